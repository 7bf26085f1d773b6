#!/usr/bin/env perl
#
# The public API as text, from the pages that `cargo doc -p leasehold --all-features --no-deps` made:
#
#   scripts/api.pl [target/doc/leasehold]
#
# Each item with its declaration, its own functions and constants, and the traits that it has. What every type has of the
# standard library is left out, and so is `store::unstable`, which any version may change. `docs/api.txt` keeps it, so that a
# change of the API shows in a diff.

use strict;
use warnings;

my $folder = $ARGV[0] // 'target/doc/leasehold';
binmode STDOUT, ':utf8';

# Pages of items that are gone may still lie there; this one is always new.
my %pages = map { $_ => 1 } page('all.html') =~ /href="([^"#]*\.html)"/g;
for my $path (sort grep { /\w+\.\w+\.html$/ && !m{^store/unstable/} } keys %pages) {
    item($path);
}

sub item {
    my ($path) = @_;
    my ($html, @own, @impls, @is) = page($path);
    (my $name = $path) =~ s{(.*/)?\w+\.(\w+)\.html$}{($1 // '') . $2}e;
    $name =~ s{/}{::}g;
    my ($section, $declaration) = ('', '');
    while ($html =~ m{<h2\ id="(?<section>[\w-]+)"
                    | <pre[^>]*class="rust\ item-decl"[^>]*>(?<declaration>.*?)</pre>
                    | <section\ id="[^"]*"\ class="(?<kind>impl|method|associatedconstant|associatedtype)\b[^"]*">
                      .*?<(?<tag>h3|h4)[^>]*class="code-header"[^>]*>(?<header>.*?)</\k<tag>>}gsx) {
        my %found = %+;
        if (defined $found{section}) {
            $section = $found{section};
        } elsif (defined $found{declaration}) {
            $declaration = text($found{declaration});
        } elsif ($section eq 'implementations') {
            push @own, text($found{header}) if $found{kind} ne 'impl';
        } elsif ($section eq 'trait-implementations' && $found{kind} ne 'method') {
            my $header = text($found{header});
            # A trait without parameters is one word of a line.
            if ($header =~ /^impl (\w+) for /) {
                push @is, $1 unless $1 eq 'StructuralPartialEq';
            } else {
                push @impls, $header;
            }
        } elsif ($section eq 'synthetic-implementations') {
            push @is, $1 if text($found{header}) =~ /^impl\S* (!?(?:Send|Sync|Unpin)) for /;
        }
    }
    print "$name\n    $declaration\n";
    print "    $_\n" for @own, @impls;
    print '    is ', join(', ', sort @is), "\n" if @is;
    print "\n";
}

sub page {
    my ($path) = @_;
    open my $file, '<:utf8', "$folder/$path" or die "$folder/$path: $!; run cargo doc first\n";
    local $/;
    return <$file>;
}

sub text {
    my ($text) = @_;
    $text =~ s/<a[^>]*class="tooltip.*?<\/a>//gs;
    # What rustdoc folds away, as it does with many variants.
    $text =~ s/<summary class="hideme">.*?<\/summary>//gs;
    $text =~ s{</?div[^>]*>|<br>}{ }g;
    $text =~ s{(class="code-attribute">.*?</span>)}{$1 }gs;
    $text =~ s/<[^>]*>//g;
    my %named = (lt => '<', gt => '>', amp => '&', quot => '"', nbsp => ' ', '#39' => "'");
    $text =~ s/&(#?\w+);/$named{$1} \/\/ "&$1;"/ge;
    $text =~ s/\s+/ /g;
    $text =~ s/\( /(/g;
    $text =~ s/, ?\)/)/g;
    $text =~ s/^ | $//g;
    return $text;
}

/* Forks a process where it asks for the id of its parent: the answer is the id of the new process, and 0 in that one.
 * Nothing else in a test asks for it. A fork ends with the thread that made it. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

pid_t getppid(void)
{
    pid_t fork_of_it = fork();
    if (fork_of_it == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return fork_of_it;
}

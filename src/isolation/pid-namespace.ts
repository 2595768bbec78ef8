// Runs child processes in a PID namespace of their own, in which a child cannot address any process
// of the gateway and so cannot signal it. Linux has these namespaces, but a container or a hardened
// unit may deny them. Whether they work is tested once, with the same command that children use.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";

const UNSHARE_PATHS = ["/usr/bin/unshare", "/bin/unshare"];
/**
 * A child that outlives `unshare` is killed with it, and /proc shows only the namespace's own
 * processes.
 */
const UNSHARE_OPTIONS = ["--pid", "--fork", "--kill-child", "--mount-proc"];
const USER_NAMESPACE_OPTIONS = ["--user", "--map-current-user"];
const TIMEOUT_MS = 5_000;

let probed: Promise<readonly string[]> | undefined;

/** Returns the words to put before a command line. Empty if there are no such namespaces. */
export const pidNamespacePrefix = (): Promise<readonly string[]> => (probed ??= probeUnshare());

async function probeUnshare(): Promise<readonly string[]> {
  const program = UNSHARE_PATHS.find((each) => existsSync(each));
  // This file is needed to find the child of `unshare` and its memory use.
  if (program === undefined || !existsSync(childrenFileOf(process.pid))) return [];
  for (const more of [USER_NAMESPACE_OPTIONS, []]) {
    const args = [...more, ...UNSHARE_OPTIONS];
    const works = await new Promise<boolean>((done) => {
      const test = ["/bin/sh", "-c", '[ "$$" = 1 ]'];
      execFile(program, [...args, ...test], { env: {}, timeout: TIMEOUT_MS }, (error) =>
        done(error === null),
      );
    });
    if (works) return [program, ...args];
  }
  return [];
}

/** Returns the file in which Linux lists the children of a process. */
export const childrenFileOf = (pid: number): string => `/proc/${pid}/task/${pid}/children`;

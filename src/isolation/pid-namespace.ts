// A child in a namespace of process ids of its own cannot name any process of the gateway, and so cannot signal one. Linux has these
// namespaces; a container or a hardened unit may deny them. Whether they work is tried out once, by the same words that a child gets.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";

const UNSHARE_PATHS = ["/usr/bin/unshare", "/bin/unshare"];
/** In the namespace a child that outlives `unshare` is killed with it, and /proc shows the namespace's own processes. */
const UNSHARE_OPTIONS = ["--pid", "--fork", "--kill-child", "--mount-proc"];
const USER_NAMESPACE_OPTIONS = ["--user", "--map-current-user"];
const TIMEOUT_MS = 5_000;

let probed: Promise<readonly string[]> | undefined;

/** The words to put before a command line; none where there are no such namespaces. */
export const pidNamespacePrefix = (): Promise<readonly string[]> => (probed ??= probeUnshare());

async function probeUnshare(): Promise<readonly string[]> {
  const program = UNSHARE_PATHS.find((each) => existsSync(each));
  // By this file the memory of the child is found, which is unshare's own child.
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

/** Where Linux lists the children of a process. */
export const childrenFileOf = (pid: number): string => `/proc/${pid}/task/${pid}/children`;

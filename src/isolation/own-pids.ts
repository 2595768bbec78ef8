// A child in a namespace of process ids of its own cannot name any process of the gateway, and so cannot signal one. Linux has these
// namespaces; a container or a hardened unit may deny them. Whether they work is tried out once, by the same words that a child gets.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";

const UNSHARE = ["/usr/bin/unshare", "/bin/unshare"];
/** In the namespace a child that outlives `unshare` is killed with it, and /proc shows the namespace's own processes. */
const WORDS = ["--pid", "--fork", "--kill-child", "--mount-proc"];
const AS_USER = ["--user", "--map-current-user"];
const PATIENCE_MS = 5_000;

let tried: Promise<readonly string[]> | undefined;

/** The words to put before a command line; none where there are no such namespaces. */
export const ownPids = (): Promise<readonly string[]> => (tried ??= tryOut());

async function tryOut(): Promise<readonly string[]> {
  const program = UNSHARE.find((each) => existsSync(each));
  // By this file the memory of the child is found, which is unshare's own child.
  if (program === undefined || !existsSync(childrenOf(process.pid))) return [];
  for (const more of [AS_USER, []]) {
    const words = [...more, ...WORDS];
    const works = await new Promise<boolean>((done) => {
      const test = ["/bin/sh", "-c", '[ "$$" = 1 ]'];
      execFile(program, [...words, ...test], { env: {}, timeout: PATIENCE_MS }, (error) =>
        done(error === null),
      );
    });
    if (works) return [program, ...words];
  }
  return [];
}

/** Where Linux lists the children of a process. */
export const childrenOf = (pid: number): string => `/proc/${pid}/task/${pid}/children`;

// That a rig finds what is planted. When chance or the machine decides in which try it shows, one try proves nothing.
import type { RigResult } from "./rig.ts";

const TRIES = 10;

/** What was said in the first of some tries in which it was found; fails where it was in none. */
export async function expectCaught(
  said: RegExp,
  play: (seed: number) => Promise<RigResult>,
): Promise<readonly string[]> {
  const others = new Set<string>();
  for (let seed = 1; seed <= TRIES; seed++) {
    const { wrong } = await play(seed);
    const found = wrong.filter((line) => said.test(line));
    if (found.length > 0) return found;
    for (const line of wrong) others.add(line.slice(0, 200));
  }
  throw new Error(
    `${said} in none of ${TRIES} tries: ${[...others].join("; ") || "nothing at all"}`,
  );
}

// Asserts that a rig finds a planted defect. If chance or the machine decides when it shows, one
// try proves nothing.
import type { RigResult } from "./rig.ts";

const TRIES = 10;

/** Returns the output of the first try that found it. Fails if no try did. */
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

// The commands of docs/tutorials/first-hour.md, as they stand there: a step is a heading, and each of its blocks is typed whole.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../../kit/program.ts";

export interface Step {
  readonly name: string;
  readonly text: string;
  /** It stays: what follows goes on in another terminal. */
  readonly stays: boolean;
}

export const page = (): string => readFileSync(join(root, "docs/tutorials/first-hour.md"), "utf8");

export function stepsOf(text: string): Step[] {
  let name = "";
  return [...text.matchAll(/^## (.+)$|^```console\n([\s\S]*?)^```$/gm)].flatMap(
    ([, heading, block]) => {
      if (heading !== undefined) name = heading;
      return block === undefined
        ? []
        : [{ name, text: block, stays: block.startsWith("npx tollgate serve") }];
    },
  );
}

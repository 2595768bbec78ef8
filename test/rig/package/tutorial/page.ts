// The steps of a tutorial: a step is a numbered heading, and each of its console blocks is typed as one text.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../../kit/process/program.ts";

export interface Step {
  /** The heading without its number. */
  readonly name: string;
  readonly text: string;
  /** Whether the command keeps running. The next steps use another terminal. */
  readonly stays: boolean;
}

export const page = (name: "first-hour" | "first-plugin" = "first-hour"): string =>
  readFileSync(join(root, `docs/tutorials/${name}.md`), "utf8");

export function stepsOf(text: string): Step[] {
  let name = "";
  return [...text.matchAll(/^## (.+)$|^```console\n([\s\S]*?)^```$/gm)].flatMap(
    ([, heading, block]) => {
      if (heading !== undefined) name = heading.replace(/^\d+\. /, "");
      return block === undefined
        ? []
        : [{ name, text: block, stays: block.startsWith("npx tollgate serve") }];
    },
  );
}

// Each operation by each library from each wire that answers it. Python's are played by `npm run clients -- python`.
import { afterAll, it } from "vitest";
import { JAVASCRIPT } from "../../clients/grid/javascript.ts";
import { grid } from "../../clients/grid/stage.ts";

const all = await grid(JAVASCRIPT);
afterAll(() => all[Symbol.asyncDispose]());

for (const { name, run } of all.checks) it(name, run);

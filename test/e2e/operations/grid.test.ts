// Each operation with each library and each upstream format. `npm run clients -- python` runs the
// Python clients.
import { afterAll, it } from "vitest";
import { JAVASCRIPT } from "../../clients/grid/javascript.ts";
import { grid } from "../../clients/grid/stage.ts";

const all = await grid(JAVASCRIPT);
afterAll(() => all[Symbol.asyncDispose]());

for (const { name, run } of all.checks) it(name, run);

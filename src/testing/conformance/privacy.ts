// What was said in private is over when its answer has left.
import assert from "node:assert/strict";
import { check, type Check } from "../check.ts";
import { inProcess } from "./needs.ts";
import type { Subject } from "./subject.ts";

/** Of a middleware whose module is known: it is run in a process of its own, whose whole memory is searched. */
export const privacy = ({ module, options }: Subject): Check[] =>
  module === undefined
    ? []
    : [
        check("under privacy it keeps nothing, in no file, no log and no memory", async () => {
          const found = JSON.parse(
            await inProcess("kept-words", JSON.stringify({ module, options })),
          ) as string[];
          assert.deepEqual(found, [], `what was said in private is still in ${found.join(", ")}`);
        }),
      ];

// What was said in private is over when its answer has left.
import assert from "node:assert/strict";
import { createCheck, type Check } from "../check.ts";
import { runScript } from "./declared-needs.ts";
import type { ConformanceSubject } from "./subject.ts";

/** Of a middleware whose module is known: it is run in a process of its own, whose whole memory is searched. */
export const privacyChecks = ({ module, options }: ConformanceSubject): Check[] =>
  module === undefined
    ? []
    : [
        createCheck(
          "under privacy it keeps nothing, in no file, no log and no memory",
          async () => {
            const found = JSON.parse(
              await runScript("kept-words", JSON.stringify({ module, options })),
            ) as string[];
            assert.deepEqual(found, [], `what was said in private is still in ${found.join(", ")}`);
          },
        ),
      ];

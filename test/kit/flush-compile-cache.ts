// Keeps compiled code for the next process. A signal ends a process that ran tests, so the code is
// written before that.
import { flushCompileCache } from "node:module";
import { afterAll } from "vitest";

afterAll(() => flushCompileCache());

// What was compiled is kept for the next process. One that tests ran in is ended by a signal, so it is written down before.
import { flushCompileCache } from "node:module";
import { afterAll } from "vitest";

afterAll(() => flushCompileCache());

// Sets the number of random cases of tests that do not specify one.
import fc from "fast-check";
import { trialCount } from "./law-effort.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), numRuns: trialCount(100) });

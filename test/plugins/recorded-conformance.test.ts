// The checks of all built-in plugins with recorded responses, split at every byte.
import { checkBuiltins, isDear } from "./builtin-checks.ts";

checkBuiltins(isDear);

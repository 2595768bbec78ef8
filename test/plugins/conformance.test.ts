// The checks of all built-in plugins that need no recorded responses.
import { checkBuiltins, isDear } from "./builtin-checks.ts";

checkBuiltins((check) => !isDear(check));

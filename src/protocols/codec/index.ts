// tollgate/protocols/codec: what any codec of a chat wire needs and should not write anew: arguments of calls that keep their
// digits, names that a wire allows, what a model takes of what is said about thinking, and what an upstream's error means.
// Pure. May import: model, plugin (types), and the tools of this floor.
export { exactly, inputOf } from "../arguments.ts";
export { failure, failureIn } from "../failure/failure.ts";
export { base64Of } from "../media.ts";
export { fitName } from "../names.ts";
export { BUDGETS, effortFor, nearest, samplingFor } from "../reasons.ts";
export { declareTool, refuseTool } from "../tools.ts";

// tollgate/protocols/codec: what any codec of a chat wire needs and should not write anew: arguments of calls that keep their
// digits, names that a wire allows, what a model takes of what is said about thinking, and what an upstream's error means.
// Pure. May import: model, plugin (types), and the tools of this floor.
export { parseExactJson, parseToolArguments } from "../arguments.ts";
export { parseError, parseErrorBody } from "../failure/failure.ts";
export { toBase64 } from "../media.ts";
export { fitName } from "../names.ts";
export { EFFORT_BUDGETS, effortForBudget, nearestEffort, supportedSampling } from "../reasons.ts";
export { declareTool, rejectTool } from "../tools.ts";

// Most of what a start makes stays, and V8 takes that for a busy program: it would give its young generation 32 MB and
// leave them there. While the gateway starts it keeps its first size; once it serves, it grows with the work as ever.
import { setFlagsFromString } from "node:v8";

const grow = (factor: number) => setFlagsFromString(`--semi-space-growth-factor=${factor}`);

export const stayYoung = () => grow(1);
/** V8's own. */
export const mayGrow = () => grow(2);

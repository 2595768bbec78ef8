// How V8 keeps memory, said before anything is made. It would make objects that often outlive a collection of the young
// generation old from the start. A request in flight does outlive one; and what is old keeps all that it names alive until
// a full collection, long after it was answered.
import { setFlagsFromString } from "node:v8";

export const startYoung = () => setFlagsFromString("--no-allocation-site-pretenuring");

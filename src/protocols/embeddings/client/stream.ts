// A host that answers with a stream all the same has not understood what it was asked.
import { fail } from "../../../model/error.ts";

export const failNotStreamed = (): never =>
  fail("upstream", "The provider answered with a stream of events.", { code: "bad_answer" });

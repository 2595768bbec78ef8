// Rejects streams. A backend that streams embeddings did not understand the request.
import { fail } from "../../../model/error.ts";

export const failNotStreamed = (): never =>
  fail("upstream", "The provider answered with a stream of events.", { code: "bad_answer" });

// Rejects streams. A backend that streams embeddings did not understand the request.
import { fail } from "../../../model/error.ts";

export const failNotStreamed = (): never =>
  fail("upstream", "The provider returned an event stream.", { code: "bad_answer" });

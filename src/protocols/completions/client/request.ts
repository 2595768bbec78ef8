// Encodes a request as a body of this protocol.
import type { CompletionRequest } from "../../../model/request.ts";
import type { Body } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { asObject, omitUndefined } from "../../json-values.ts";
import { ID } from "../constants.ts";

export function encodeRequest(
  r: CompletionRequest,
  of: Pick<CallContext, "model" | "stream">,
): Body {
  const [first] = r.prompts;
  const { sampling: s } = r;
  return omitUndefined({
    model: of.model,
    prompt: r.prompts.length === 1 && first !== undefined ? first : r.prompts,
    suffix: r.suffix,
    max_tokens: r.maxTokens,
    stop: r.stop,
    temperature: s.temperature,
    top_p: s.topP,
    seed: s.seed,
    n: s.n,
    presence_penalty: s.presence,
    frequency_penalty: s.frequency,
    user: r.user,
    stream: of.stream ? true : undefined,
    ...asObject(r.ext[ID]),
  });
}

// Encodes requests for the fill-in-the-middle APIs of two vendors. They accept one prompt, a
// suffix, and few other fields.
import { fail } from "../../../model/error.ts";
import type { CompletionRequest } from "../../../model/request.ts";
import type { Body } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { asObject, omitUndefined } from "../../json-values.ts";
import { ID } from "../constants.ts";

export function encodeFimRequest(r: CompletionRequest, of: CallContext): Body {
  return omitUndefined({
    model: of.model,
    prompt: singlePrompt(r, of),
    suffix: r.suffix,
    max_tokens: r.maxTokens,
    stop: r.stop,
    temperature: r.sampling.temperature,
    top_p: r.sampling.topP,
    random_seed: r.sampling.seed,
    stream: of.stream ? true : undefined,
  });
}

/**
 * Returns the single prompt of a request. Fields that only the completions protocol has are
 * reported as dropped. If dropping them would change the response's form, the request is rejected.
 */
export function singlePrompt(r: CompletionRequest, of: CallContext): string {
  const [prompt] = r.prompts;
  if (r.prompts.length !== 1 || typeof prompt !== "string")
    return fail("unsupported", `${of.model} supports only one text as its prompt.`, {
      param: "prompt",
      code: "unsupported_input",
    });
  const own = asObject(r.ext[ID]) ?? {};
  if (own["echo"] === true || own["logprobs"] !== undefined)
    fail("unsupported", `${of.model} supports neither echo nor log probabilities.`, {
      param: own["echo"] === true ? "echo" : "logprobs",
    });
  for (const field of ["best_of", "logit_bias"])
    if (own[field] !== undefined) of.reportLoss(field, "dropped");
  if (r.sampling.presence !== undefined) of.reportLoss("presence_penalty", "dropped");
  if (r.sampling.frequency !== undefined) of.reportLoss("frequency_penalty", "dropped");
  if (r.user !== undefined) of.reportLoss("user", "dropped");
  return prompt;
}

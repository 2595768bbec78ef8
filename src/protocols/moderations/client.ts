// The half of the moderations protocol that faces providers.
import { fail } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import type { ModerationRequest } from "../../model/request.ts";
import type { Usage } from "../../model/usage.ts";
import type { Body, JsonObject } from "../../model/values.ts";
import type { Outgoing } from "../../plugin/outgoing.ts";
import type {
  CallContext,
  ResponseContext,
  PassthroughStream,
  PassthroughSink,
} from "../../plugin/protocol.ts";
import { throwParsedError } from "../failure/parse-error.ts";
import {
  isObject,
  asList,
  omitUndefined,
  asNumber,
  asObject,
  parseObject,
  asText,
} from "../json-values.ts";
import { createResponsePassthrough, openaiFaultBody } from "../passthrough.ts";
import { replaceModelName } from "../sse/index.ts";

/** Differences between backends, as data. Default for every field: the behavior of OpenAI. */
export interface ModerationDialect {
  /** Whether the backend accepts text only. Default: text and images. */
  textOnly?: boolean;
}

export function prepare(out: Outgoing, of: CallContext, { textOnly }: ModerationDialect): void {
  if (textOnly && asList(out.get("input")).some((one) => isObject(one)))
    fail("unsupported", `${of.model} supports text only.`, {
      param: "input",
      code: "unsupported_input",
    });
}

export const encodeRequest = (r: ModerationRequest, of: Pick<CallContext, "model">): Body =>
  omitUndefined({ model: of.model, input: r.input, user: r.user });

/** Decodes results into events, one item per result. */
export function decodeResponse(body: Buffer, emit: (event: ModelEvent) => void): void {
  const { answer, verdicts } = parseResults(body);
  emit(omitUndefined({ type: "start" as const, id: asText(answer["id"]) }));
  verdicts.forEach((verdict, index) => emit({ type: "item", index, item: { raw: verdict } }));
  emit({ type: "usage", usage: usageOf(answer) });
  emit({ type: "finish", reason: "stop" });
}

/** Forwards a response with the model name that the client uses. */
export const createPassthrough = (sink: PassthroughSink, to: ResponseContext): PassthroughStream =>
  createResponsePassthrough(
    sink,
    (body) => {
      const { answer } = parseResults(body);
      const id = asText(answer["id"]);
      if (id !== undefined) sink.reportStart(id);
      sink.reportUsage({ type: "usage", usage: usageOf(answer) });
      sink.reportContent();
      sink.reportFinish("stop");
      replaceModelName(body, to.model, (b) => sink.write(b));
    },
    openaiFaultBody(to),
  );

function parseResults(body: Buffer) {
  const answer = parseObject(body.toString("utf8"));
  const results = answer?.["results"];
  if (answer?.["error"] && !results) throwParsedError(answer);
  if (
    !answer ||
    !Array.isArray(results) ||
    results.length === 0 ||
    !asList(results).every(isObject)
  )
    return fail("upstream", "The provider returned no moderation result.", { code: "bad_answer" });
  return { answer, verdicts: results as unknown as readonly JsonObject[] };
}

/** Returns the usage. It is usually empty, because most backends report no counts. */
function usageOf({ usage }: JsonObject): Usage {
  const input = asNumber(asObject(usage)?.["prompt_tokens"]);
  return input === undefined ? {} : { input };
}

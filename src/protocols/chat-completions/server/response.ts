// Server half: encodes a complete response as one object, equal to the sum of a stream of the same
// response.
import type {
  ResponseContext,
  Block,
  Json,
  JsonObject,
  ModelResponse,
  Opt,
} from "../../../plugin/index.ts";
import { formatFinishReason, ID } from "../constants.ts";
import { withCost } from "../../cost-in-usage.ts";
import { usageTo } from "../usage.ts";
import { asObject } from "../../json-values.ts";
import {
  createListIndexer,
  annotationOf,
  toolCallDelta,
  readDeclarations,
  reasoningDetails,
  isWrapped,
  mediaDelta,
  textDetail,
  unwrapped,
  type ChatDeclarations,
} from "./response-common.ts";

interface Message {
  content: string | null;
  refusal: string | null;
  reasoning: string | null;
  details: Json[];
  annotations: Json[];
  images: Json[];
  calls: JsonObject[];
  logprobs: { content: Json[] | null; refusal: Json[] | null } | null;
  more: Record<string, Json>;
}

export function encodeResponse(answer: ModelResponse, to: ResponseContext): JsonObject {
  const declared = readDeclarations(to.body);
  const m: Message = {
    content: null,
    refusal: null,
    reasoning: null,
    details: [],
    annotations: [],
    images: [],
    calls: [],
    logprobs: null,
    more: {},
  };
  for (const block of answer.blocks) add(m, block, to, declared);
  const { finish } = answer;
  const refused = m.refusal !== null;
  if (finish.reason === "refusal" && !refused) m.refusal = finish.detail ?? null;
  const calls = m.calls.length > 0;
  const nothing = !calls && m.refusal === null && m.more["audio"] === undefined;
  const fn = declared.usesLegacyCalls ? asObject(m.calls[0]?.["function"]) : undefined;
  const message: JsonObject = {
    role: "assistant",
    content: m.content ?? (nothing ? "" : null),
    refusal: m.refusal,
    annotations: m.annotations,
    ...(m.reasoning !== null && { reasoning_content: m.reasoning }),
    ...(m.details.length > 0 && createListIndexer()({ reasoning_details: m.details })),
    ...(m.images.length > 0 && { images: m.images }),
    ...m.more,
    ...(calls && !declared.usesLegacyCalls && { tool_calls: m.calls }),
    ...(fn && { function_call: fn }),
  };
  return {
    id: `chatcmpl-${to.id}`,
    object: "chat.completion",
    created: to.created,
    model: to.model,
    choices: [
      {
        index: 0,
        message,
        logprobs: m.logprobs,
        finish_reason: formatFinishReason(finish, {
          calls,
          refusal: refused,
          legacy: declared.usesLegacyCalls,
        }),
      },
    ],
    usage: withCost(usageTo(answer.usage), to),
  };
}

function append(to: Json[], more: Opt<readonly Json[]>): void {
  for (const one of more ?? []) to.push(one);
}

function addLogprobs(m: Message, what: "content" | "refusal", logprobs: readonly Json[]): void {
  m.logprobs ??= { content: null, refusal: null };
  append((m.logprobs[what] ??= []), logprobs);
}

function add(m: Message, block: Block, to: ResponseContext, declared: ChatDeclarations): void {
  switch (block.type) {
    case "text": {
      m.content = (m.content ?? "") + block.text;
      for (const citation of block.citations ?? []) {
        const annotation = annotationOf(citation);
        if (annotation) m.annotations.push(annotation);
        else to.reportLoss("citations", "dropped");
      }
      if (block.logprobs) addLogprobs(m, "content", block.logprobs);
      if (block.proof) {
        const { reasoning_details: details, ...extra } = textDetail(block.proof);
        append(m.details, details as Json[] | undefined);
        Object.assign(m.more, extra);
      }
      return;
    }
    case "refusal":
      m.refusal = (m.refusal ?? "") + block.text;
      if (block.logprobs) addLogprobs(m, "refusal", block.logprobs);
      return;
    case "reasoning": {
      const text = block.text ?? block.summary?.join("") ?? "";
      if (text !== "") m.reasoning = (m.reasoning ?? "") + text;
      if (block.proof)
        append(m.details, reasoningDetails(block.proof, text, block.summary !== undefined));
      return;
    }
    case "call": {
      const { id, name, tool, args, proof } = block;
      const call = { type: "call" as const, id, name, tool };
      m.calls.push(
        toolCallDelta(call, isWrapped(call, declared) ? unwrapped(args) : args, declared, proof),
      );
      return;
    }
    case "image":
    case "audio": {
      const text = mediaDelta(block.type, block.media, to);
      if (text?.["images"]) append(m.images, text["images"] as Json[]);
      else if (text) Object.assign(m.more, text);
      return;
    }
    case "opaque": {
      const raw = block.origin === ID && asObject(block.raw);
      if (raw) Object.assign(m.more, raw);
      else to.reportLoss(`${block.origin} content`, "dropped", "foreign_content");
      return;
    }
    case "video":
    case "document":
    case "result":
      to.reportLoss(block.type, "dropped");
  }
}

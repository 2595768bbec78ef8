// Server half: a folded answer as one object. It says what a stream of the same answer would have come to.
import type {
  AnswerContext,
  Block,
  Json,
  JsonObject,
  ModelAnswer,
  Opt,
} from "../../../plugin/index.ts";
import { wordOf } from "../finish.ts";
import { usageTo } from "../usage.ts";
import { object } from "../../json.ts";
import { ID } from "../words.ts";
import { placing } from "./lists.ts";
import {
  annotationOf,
  callWith,
  declaredBy,
  detailsOf,
  isWrapped,
  mediaDelta,
  textDetail,
  unwrapped,
  type ChatDeclarations,
} from "./saying.ts";

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

export function whole(answer: ModelAnswer, to: AnswerContext): JsonObject {
  const declared = declaredBy(to.body);
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
  const fn = declared.legacy ? object(m.calls[0]?.["function"]) : undefined;
  const message: JsonObject = {
    role: "assistant",
    content: m.content ?? (nothing ? "" : null),
    refusal: m.refusal,
    annotations: m.annotations,
    ...(m.reasoning !== null && { reasoning_content: m.reasoning }),
    ...(m.details.length > 0 && placing()({ reasoning_details: m.details })),
    ...(m.images.length > 0 && { images: m.images }),
    ...m.more,
    ...(calls && !declared.legacy && { tool_calls: m.calls }),
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
        finish_reason: wordOf(finish, { calls, refusal: refused, legacy: declared.legacy }),
      },
    ],
    usage: usageTo(answer.usage),
  };
}

function append(to: Json[], more: Opt<readonly Json[]>): void {
  for (const one of more ?? []) to.push(one);
}

function weigh(m: Message, what: "content" | "refusal", logprobs: readonly Json[]): void {
  m.logprobs ??= { content: null, refusal: null };
  append((m.logprobs[what] ??= []), logprobs);
}

function add(m: Message, block: Block, to: AnswerContext, declared: ChatDeclarations): void {
  switch (block.type) {
    case "text": {
      m.content = (m.content ?? "") + block.text;
      for (const citation of block.citations ?? []) {
        const annotation = annotationOf(citation);
        if (annotation) m.annotations.push(annotation);
        else to.lose("citations", "dropped");
      }
      if (block.logprobs) weigh(m, "content", block.logprobs);
      if (block.proof) {
        const { reasoning_details: details, ...extra } = textDetail(block.proof);
        append(m.details, details as Json[] | undefined);
        Object.assign(m.more, extra);
      }
      return;
    }
    case "refusal":
      m.refusal = (m.refusal ?? "") + block.text;
      if (block.logprobs) weigh(m, "refusal", block.logprobs);
      return;
    case "reasoning": {
      const said = block.text ?? block.summary?.join("") ?? "";
      if (said !== "") m.reasoning = (m.reasoning ?? "") + said;
      if (block.proof) append(m.details, detailsOf(block.proof, said, block.summary !== undefined));
      return;
    }
    case "call": {
      const { id, name, tool, args, proof } = block;
      const call = { type: "call" as const, id, name, tool };
      m.calls.push(
        callWith(call, isWrapped(call, declared) ? unwrapped(args) : args, declared, proof),
      );
      return;
    }
    case "image":
    case "audio": {
      const said = mediaDelta(block.type, block.media, to);
      if (said?.["images"]) append(m.images, said["images"] as Json[]);
      else if (said) Object.assign(m.more, said);
      return;
    }
    case "opaque": {
      const raw = block.origin === ID && object(block.raw);
      if (raw) Object.assign(m.more, raw);
      else to.lose(`${block.origin} content`, "dropped", "foreign_content");
      return;
    }
    case "video":
    case "document":
    case "result":
      to.lose(block.type, "dropped");
  }
}

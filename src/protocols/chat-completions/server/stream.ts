// Server half: events as chunks. Calls may interleave here; texts may not, so one that opens beside another waits for it.
import type { Fault } from "../../../model/error.ts";
import type {
  AnswerContext,
  Encoder,
  Finish,
  Json,
  JsonObject,
  ModelEvent,
  OpenBlock,
  Proof,
  Usage,
} from "../../../plugin/index.ts";
import { wholeCharacters } from "../../characters.ts";
import { wordOf } from "../finish.ts";
import { usageTo } from "../usage.ts";
import { object } from "../../json.ts";
import { ID } from "../words.ts";
import { calling } from "./calls.ts";
import { faultChunk } from "./fault.ts";
import { placing } from "./lists.ts";
import { annotationOf, declaredBy, detailsOf, mediaDelta, textDetail } from "./saying.ts";

interface Open {
  block: OpenBlock;
  said: string;
  proof: Proof | undefined;
}

/** Whose turn it is to speak, and what the others will say when it is theirs. */
interface Channel {
  floor: number | undefined;
  waiting: Map<number, ModelEvent[]>;
}

export function stream(write: (text: string) => void, to: AnswerContext): Encoder {
  const declared = declaredBy(to.body);
  const shown = object(to.body["stream_options"])?.["include_usage"] === true;
  const frame = `"id":${JSON.stringify(`chatcmpl-${to.id}`)},"object":"chat.completion.chunk","created":${to.created},"model":${JSON.stringify(to.model)}`;
  const head = `data: {${frame},"choices":[{"index":0,"delta":`;
  const tail = `}]${shown ? ',"usage":null' : ""}}\n\n`;
  const blocks = new Map<number, Open>();
  let begun = false;
  let refused = false;
  let usage: Usage = {};

  const send = (delta: string, logprobs = "null", finish = "null") =>
    write(`${head}${delta},"logprobs":${logprobs},"finish_reason":${finish}${tail}`);
  const say = (delta: JsonObject) => send(JSON.stringify(delta));
  const place = placing();
  /** What may hold lists. */
  const list = (delta: JsonObject) => say(place(delta));
  const begin = (first: string) => {
    if (begun) return;
    begun = true;
    say({
      role: "assistant",
      content: first === "text" || first === "none" ? "" : null,
      refusal: null,
    });
  };

  const calls = calling(say, declared);

  const delta = (
    index: number,
    open: Open,
    words: string,
    logprobs: readonly Json[] | undefined,
  ) => {
    const { block } = open;
    switch (block.type) {
      case "call":
        return calls.delta(index, words);
      case "text":
      case "refusal": {
        if (block.type === "refusal") refused = true;
        const key = block.type === "text" ? "content" : "refusal";
        const told =
          logprobs &&
          JSON.stringify({
            content: block.type === "text" ? logprobs : null,
            refusal: block.type === "text" ? null : logprobs,
          });
        return send(`{"${key}":${JSON.stringify(words)}}`, told);
      }
      case "reasoning":
        open.said += words;
        return send(`{"reasoning_content":${JSON.stringify(words)}}`);
      case "opaque":
      case "image":
      case "audio":
        open.said += words;
    }
  };

  const close = (index: number, open: Open) => {
    const { block, proof } = open;
    switch (block.type) {
      case "call":
        return calls.close(index);
      case "reasoning":
        if (proof) list({ reasoning_details: detailsOf(proof, open.said, block.summary === true) });
        return;
      case "text":
        if (proof) list(textDetail(proof));
        return;
      case "opaque": {
        const raw = block.origin === ID && object(block.raw);
        // What another protocol's provider did on its own side has no place here.
        if (raw) list(raw);
        else to.lose(`${block.origin} content`, "dropped", "foreign_content");
        return;
      }
      case "refusal":
      case "image":
      case "audio":
    }
  };

  const end = (finish: Finish) => {
    begin("none");
    if (finish.reason === "refusal" && !refused && finish.detail !== undefined)
      say({ refusal: finish.detail });
    const word = wordOf(finish, { calls: calls.any, refusal: refused, legacy: declared.legacy });
    send("{}", "null", JSON.stringify(word));
    if (shown) write(`data: {${frame},"choices":[],"usage":${JSON.stringify(usageTo(usage))}}\n\n`);
    write("data: [DONE]\n\n");
  };

  const speak = (e: ModelEvent): void => {
    switch (e.type) {
      case "open":
        begin(e.block.type);
        blocks.set(e.index, { block: e.block, said: "", proof: undefined });
        if (e.block.type === "call") calls.open(e.index, e.block);
        return;
      case "delta":
        return delta(e.index, blocks.get(e.index)!, e.text, e.logprobs);
      case "media": {
        const { block } = blocks.get(e.index)!;
        if (e.partial || (block.type !== "image" && block.type !== "audio")) return;
        const said = mediaDelta(block.type, e.media, to);
        if (said) list(said);
        return;
      }
      case "proof":
        blocks.get(e.index)!.proof = e.proof;
        if (blocks.get(e.index)!.block.type === "call") calls.proof(e.index, e.proof);
        return;
      case "cite": {
        const annotation = annotationOf(e.citation);
        if (annotation) list({ annotations: [annotation] });
        else to.lose("citations", "dropped");
        return;
      }
      case "close":
        close(e.index, blocks.get(e.index)!);
        blocks.delete(e.index);
        return;
      case "start":
      case "usage":
      case "finish":
    }
  };

  const channels = new Map<string, Channel>();
  const channelOf = new Map<number, Channel>();
  const heed = (e: Exclude<ModelEvent, { type: "start" | "usage" | "finish" }>): void => {
    if (
      e.type === "open" &&
      (e.block.type === "text" || e.block.type === "reasoning" || e.block.type === "refusal")
    ) {
      let channel = channels.get(e.block.type);
      if (!channel)
        channels.set(e.block.type, (channel = { floor: undefined, waiting: new Map() }));
      channelOf.set(e.index, channel);
      if (channel.floor === undefined) channel.floor = e.index;
      else channel.waiting.set(e.index, []);
    }
    const channel = channelOf.get(e.index);
    if (!channel) return speak(e);
    if (channel.floor !== e.index) return void channel.waiting.get(e.index)!.push(e);
    speak(e);
    if (e.type !== "close") return;
    channelOf.delete(e.index);
    for (const [next, held] of channel.waiting) {
      channel.waiting.delete(next);
      channel.floor = next;
      for (const one of held) speak(one);
      if (blocks.has(next)) return;
      channelOf.delete(next);
    }
    channel.floor = undefined;
  };

  return wholeCharacters({
    event(e) {
      switch (e.type) {
        case "start":
          return;
        case "usage":
          usage = e.usage;
          return;
        case "finish":
          return end(e);
        default:
          return heed(e);
      }
    },
    fail: (fault: Fault) => write(faultChunk(fault)),
  });
}

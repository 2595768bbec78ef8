// What chunks come to: blocks that open and close. This wire never says where a block ends, so a block ends where
// another begins, or with the answer.
import { fail } from "../../../model/error.ts";
import type {
  Finish,
  Json,
  JsonObject,
  ModelEvent,
  OpenBlock,
  Opt,
} from "../../../plugin/index.ts";
import type { ChatTraits } from "../dialect.ts";
import { finishOf } from "../finish.ts";
import { textProof } from "../server/reasoning.ts";
import { thoughtOf } from "../server/content.ts";
import { usageSeen } from "../usage.ts";
import { list, object, text } from "../../json.ts";
import { mediaOf } from "../../media.ts";
import { ID } from "../words.ts";
import { calling } from "./calls.ts";
import { detailing } from "./details.ts";
import { untagging } from "./tags.ts";

export interface ChunkAssembler {
  chunk(chunk: JsonObject): void;
  /** Once; throws when there was no finish. */
  end(): void;
  readonly done: boolean;
}

type Channel = "text" | "reasoning" | "refusal";

export function assembling(emit: (event: ModelEvent) => void, traits: ChatTraits): ChunkAssembler {
  let next = 0;
  let started = false;
  let done = false;
  let id: string | undefined;
  let finish: Finish | undefined;
  let channel: Channel | undefined;
  let at = -1;
  let plain = false;
  let audio: Record<string, Json> | undefined;
  let logprobs: Json[] | undefined;
  const details = detailing();

  const block = (of: OpenBlock, more: (index: number) => void) => {
    const index = next++;
    emit({ type: "open", index, block: of });
    more(index);
    emit({ type: "close", index });
  };
  const close = () => {
    if (channel === undefined) return;
    if (channel === "reasoning") prove();
    emit({ type: "close", index: at });
    channel = undefined;
  };
  const prove = () => {
    const proof = details.take();
    if (proof) emit({ type: "proof", index: at, proof });
  };
  /** Something else begins: reasoning that was only signed, never shown, stands before it. */
  const leave = () => {
    close();
    const proof = details.take();
    if (proof) block({ type: "reasoning" }, (index) => emit({ type: "proof", index, proof }));
  };
  const to = (wanted: Channel) => {
    if (channel === wanted) return;
    if (wanted === "reasoning") close();
    else leave();
    channel = wanted;
    at = next++;
    emit({ type: "open", index: at, block: { type: wanted } });
  };
  const say = (wanted: Channel, words: string) => {
    if (words === "") return;
    to(wanted);
    emit(
      logprobs
        ? { type: "delta", index: at, text: words, logprobs }
        : { type: "delta", index: at, text: words },
    );
    logprobs = undefined;
  };
  const shown = (of: OpenBlock, more: (index: number) => void) => {
    leave();
    block(of, more);
  };
  const tags = traits.thinkTags ? untagging(say) : undefined;
  const calls = calling(
    emit,
    () => {
      leave();
      return next++;
    },
    () => id,
  );

  const content = (said: Opt<Json>) => {
    if (typeof said === "string") return tags ? tags.push(said) : say("text", said);
    for (const raw of list(said)) {
      const part = object(raw);
      if (part?.["type"] === "thinking") say("reasoning", thoughtOf(part["thinking"]));
      else if (part?.["type"] === "reasoning")
        say(
          "reasoning",
          list(part["summary"])
            .map((s) => text(object(s)?.["text"]) ?? "")
            .join(""),
        );
      else say("text", text(part?.["text"]) ?? "");
    }
  };

  const delta = (d: JsonObject) => {
    const more = list(d["reasoning_details"]);
    const thought =
      text(d["reasoning_content"]) ?? text(d["reasoning"]) ?? text(d["reasoning_text"]);
    details.add(more);
    // Where both are sent, the details repeat the words.
    if (thought) plain = true;
    say("reasoning", thought ?? (plain ? "" : details.said(more)));
    content(d["content"]);
    say("refusal", text(d["refusal"]) ?? "");
    for (const piece of list(d["tool_calls"])) calls.piece(piece);
    if (d["function_call"] != null) calls.legacy(d["function_call"]);
    for (const citation of list(d["annotations"])) {
      // What is cited after its text was left has no block to stand on.
      if (channel === "text") emit({ type: "cite", index: at, citation: flat(citation) });
    }
    const proof = object(d["extra_content"]) && textProof(d);
    if (proof && channel === "text") emit({ type: "proof", index: at, proof });
    for (const image of list(d["images"])) {
      const url = text(object(object(image)?.["image_url"])?.["url"]);
      if (url !== undefined)
        shown({ type: "image" }, (index) => emit({ type: "media", index, media: mediaOf(url) }));
    }
    const sound = object(d["audio"]);
    if (sound) hear((audio ??= {}), sound);
  };

  return {
    get done() {
      return done;
    },
    chunk(chunk) {
      const usage = usageSeen(chunk, traits);
      // One vendor begins with a chunk that is about the prompt, and about no answer yet.
      if (!started && (usage || text(chunk["id"]) || list(chunk["choices"]).length > 0)) {
        started = true;
        id = text(chunk["id"]) || undefined;
        emit({ type: "start", id, model: text(chunk["model"]) });
      }
      // Several choices are never asked for here.
      const choice = list(chunk["choices"])
        .map(object)
        .find((c) => (c?.["index"] ?? 0) === 0);
      if (choice) {
        const probable = object(choice["logprobs"]);
        const told = list(probable?.["content"] ?? probable?.["refusal"]);
        if (told.length > 0) logprobs ??= [];
        for (const one of told) logprobs!.push(one);
        const d = object(choice["delta"]);
        if (d) delta(d);
        const word = text(choice["finish_reason"]);
        if (word) finish = finishOf(word);
      }
      if (usage) emit(usage);
    },
    end() {
      if (done) return;
      if (!finish)
        fail("upstream", "The provider's answer ended before it was finished.", {
          code: "truncated",
        });
      done = true;
      tags?.end();
      leave();
      calls.end();
      if (audio) block({ type: "opaque", origin: ID, raw: { audio } }, () => {});
      emit(calls.any && finish!.reason === "stop" ? { ...finish!, reason: "tool_calls" } : finish!);
    },
  };
}

/** Sound comes in pieces; its bytes and its words grow, the rest is said once. */
function hear(audio: Record<string, Json>, piece: JsonObject): void {
  for (const key in piece) {
    const now = piece[key]!;
    const grows = key === "data" || key === "transcript";
    audio[key] = grows ? (text(audio[key]) ?? "") + (text(now) ?? "") : now;
  }
}

/** Citations are flat everywhere but here. */
function flat(citation: Json): Json {
  const c = object(citation);
  const type = text(c?.["type"]);
  const inner = type === undefined ? undefined : object(c?.[type]);
  return inner ? { type, ...inner } : citation;
}

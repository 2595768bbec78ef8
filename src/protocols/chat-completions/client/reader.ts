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
  Proof,
} from "../../../plugin/index.ts";
import type { ChatTraits } from "../dialect.ts";
import { finishOf } from "../finish.ts";
import { textProof } from "../server/reasoning.ts";
import { thoughtOf } from "../server/content.ts";
import { usageSeen } from "../usage.ts";
import { list, object, text } from "../../json.ts";
import { mediaOf } from "../../media.ts";
import { ID } from "../words.ts";
import { CallReader } from "./calls.ts";
import { detailing } from "./details.ts";
import { untagging, type Untagging } from "./tags.ts";

type Channel = "text" | "reasoning" | "refusal";
type Emit = (event: ModelEvent) => void;

export class ChatReader {
  done = false;
  readonly #emit: Emit;
  readonly #traits: ChatTraits;
  readonly #tags: Untagging | undefined;
  readonly #calls: CallReader;
  readonly #details = detailing();
  #next = 0;
  #started = false;
  #id: string | undefined;
  #finish: Finish | undefined;
  #channel: Channel | undefined;
  /** The block of the channel that is open. */
  #at = -1;
  /** Reasoning came in a field of its own: the details only repeat its words. */
  #plain = false;
  #audio: Record<string, Json> | undefined;
  #logprobs: Json[] | undefined;

  constructor(emit: Emit, traits: ChatTraits) {
    this.#emit = emit;
    this.#traits = traits;
    this.#tags = traits.thinkTags ? untagging((to, words) => this.#say(to, words)) : undefined;
    this.#calls = new CallReader(emit, {
      open: () => {
        this.#leave();
        return this.#next++;
      },
      answerId: () => this.#id,
    });
  }

  /** Whether it came to its content alone: another one that is like it in all else comes to `words`. */
  chunk(chunk: JsonObject): boolean {
    const usage = usageSeen(chunk, this.#traits);
    const choices = list(chunk["choices"]);
    // One vendor begins with a chunk that is about the prompt, and about no answer yet.
    if (!this.#started && (usage || text(chunk["id"]) || choices.length > 0)) {
      this.#started = true;
      this.#id = text(chunk["id"]) || undefined;
      this.#emit({ type: "start", id: this.#id, model: text(chunk["model"]) });
    }
    const choice = firstOf(choices);
    if (choice) this.#choice(choice);
    if (usage) this.#emit(usage);
    return !usage && choice !== undefined && saysContentAlone(choice);
  }

  words(said: string): void {
    this.#content(said);
  }

  /** Once; throws when there was no finish. */
  end(): void {
    if (this.done) return;
    const finish =
      this.#finish ??
      fail("upstream", "The provider's answer ended before it was finished.", {
        code: "truncated",
      });
    this.done = true;
    this.#tags?.end();
    this.#leave();
    this.#calls.end();
    if (this.#audio) this.#block({ type: "opaque", origin: ID, raw: { audio: this.#audio } });
    const calls = this.#calls.any && finish.reason === "stop";
    this.#emit(calls ? { ...finish, reason: "tool_calls" } : finish);
  }

  #choice(choice: JsonObject): void {
    const probable = object(choice["logprobs"]);
    const told = list(probable?.["content"] ?? probable?.["refusal"]);
    if (told.length > 0) this.#logprobs ??= [];
    for (const one of told) this.#logprobs!.push(one);
    const delta = object(choice["delta"]);
    if (delta) this.#delta(delta);
    const word = text(choice["finish_reason"]);
    if (word) this.#finish = finishOf(word);
  }

  #delta(d: JsonObject): void {
    const more = list(d["reasoning_details"]);
    const thought =
      text(d["reasoning_content"]) ?? text(d["reasoning"]) ?? text(d["reasoning_text"]);
    this.#details.add(more);
    if (thought) this.#plain = true;
    this.#say("reasoning", thought ?? (this.#plain ? "" : this.#details.said(more)));
    this.#content(d["content"]);
    this.#say("refusal", text(d["refusal"]) ?? "");
    for (const piece of list(d["tool_calls"])) this.#calls.piece(piece);
    if (d["function_call"] != null) this.#calls.legacy(d["function_call"]);
    for (const citation of list(d["annotations"])) {
      // What is cited after its text was left has no block to stand on.
      if (this.#channel === "text")
        this.#emit({ type: "cite", index: this.#at, citation: flat(citation) });
    }
    const proof = object(d["extra_content"]) && textProof(d);
    if (proof && this.#channel === "text") this.#emit({ type: "proof", index: this.#at, proof });
    for (const image of list(d["images"])) this.#picture(image);
    const sound = object(d["audio"]);
    if (sound) hear((this.#audio ??= {}), sound);
  }

  #content(said: Opt<Json>): void {
    if (typeof said === "string")
      return this.#tags ? this.#tags.push(said) : this.#say("text", said);
    for (const raw of list(said)) {
      const part = object(raw);
      if (part?.["type"] === "thinking") this.#say("reasoning", thoughtOf(part["thinking"]));
      else if (part?.["type"] === "reasoning")
        this.#say(
          "reasoning",
          list(part["summary"])
            .map((s) => text(object(s)?.["text"]) ?? "")
            .join(""),
        );
      else this.#say("text", text(part?.["text"]) ?? "");
    }
  }

  #picture(image: Json): void {
    const url = text(object(object(image)?.["image_url"])?.["url"]);
    if (url === undefined) return;
    this.#leave();
    const index = this.#next++;
    this.#emit({ type: "open", index, block: { type: "image" } });
    this.#emit({ type: "media", index, media: mediaOf(url) });
    this.#emit({ type: "close", index });
  }

  #say(wanted: Channel, words: string): void {
    if (words === "") return;
    if (this.#channel !== wanted) this.#turn(wanted);
    const index = this.#at;
    const logprobs = this.#logprobs;
    if (logprobs === undefined) return this.#emit({ type: "delta", index, text: words });
    this.#logprobs = undefined;
    this.#emit({ type: "delta", index, text: words, logprobs });
  }

  #turn(wanted: Channel): void {
    if (wanted === "reasoning") this.#close();
    else this.#leave();
    this.#channel = wanted;
    this.#at = this.#next++;
    this.#emit({ type: "open", index: this.#at, block: { type: wanted } });
  }

  #close(): void {
    if (this.#channel === undefined) return;
    const proof = this.#channel === "reasoning" ? this.#details.take() : undefined;
    if (proof) this.#emit({ type: "proof", index: this.#at, proof });
    this.#emit({ type: "close", index: this.#at });
    this.#channel = undefined;
  }

  /** Something else begins: reasoning that was only signed, never shown, stands before it. */
  #leave(): void {
    this.#close();
    const proof = this.#details.take();
    if (proof) this.#block({ type: "reasoning" }, proof);
  }

  /** A block that is whole at once. */
  #block(block: OpenBlock, proof?: Proof): void {
    const index = this.#next++;
    this.#emit({ type: "open", index, block });
    if (proof) this.#emit({ type: "proof", index, proof });
    this.#emit({ type: "close", index });
  }
}

/** Several are never asked for here. */
function firstOf(choices: readonly Json[]): JsonObject | undefined {
  for (const raw of choices) {
    const choice = object(raw);
    if ((choice?.["index"] ?? 0) === 0) return choice;
  }
  return undefined;
}

/** A reason to finish may stand beside it: said once more it is the same. */
function saysContentAlone(choice: JsonObject): boolean {
  if (choice["logprobs"] != null) return false;
  const delta = object(choice["delta"]);
  for (const key in delta)
    if (key !== "content" && key !== "role" && delta[key] != null) return false;
  return typeof delta?.["content"] === "string";
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

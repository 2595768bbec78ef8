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
import { parseFinishReason } from "../finish-reasons.ts";
import { textProof } from "../server/reasoning.ts";
import { reasoningTextOf } from "../server/content.ts";
import { usageSeen } from "../usage.ts";
import { asList, asObject, asText } from "../../json-values.ts";
import { parseMediaUrl } from "../../media-url.ts";
import { ID } from "../constants.ts";
import { ToolCallReader } from "./tool-call-reader.ts";
import { createReasoningDetails } from "./reasoning-details.ts";
import { createThinkTagParser, type ThinkTagParser } from "./think-tags.ts";

type Channel = "text" | "reasoning" | "refusal";
type Emit = (event: ModelEvent) => void;

export class ChunkReader {
  isDone = false;
  readonly #emit: Emit;
  readonly #traits: ChatTraits;
  readonly #tags: ThinkTagParser | undefined;
  readonly #calls: ToolCallReader;
  readonly #details = createReasoningDetails();
  #next = 0;
  #started = false;
  #id: string | undefined;
  #finish: Finish | undefined;
  #channel: Channel | undefined;
  /** The block of the channel that is open. */
  #openBlock = -1;
  /** Reasoning came in a field of its own: the details only repeat its words. */
  #plain = false;
  #audio: Record<string, Json> | undefined;
  #logprobs: Json[] | undefined;

  constructor(emit: Emit, traits: ChatTraits) {
    this.#emit = emit;
    this.#traits = traits;
    this.#tags = traits.thinkTags
      ? createThinkTagParser((to, words) => this.#say(to, words))
      : undefined;
    this.#calls = new ToolCallReader(emit, {
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
    const choices = asList(chunk["choices"]);
    // One vendor begins with a chunk that is about the prompt, and about no answer yet.
    if (!this.#started && (usage || asText(chunk["id"]) || choices.length > 0)) {
      this.#started = true;
      this.#id = asText(chunk["id"]) || undefined;
      this.#emit({ type: "start", id: this.#id, model: asText(chunk["model"]) });
    }
    const choice = firstOf(choices);
    if (choice) this.#choice(choice);
    if (usage) this.#emit(usage);
    return !usage && choice !== undefined && hasOnlyContent(choice);
  }

  contentText(textContent: string): void {
    this.#content(textContent);
  }

  /** Once; throws when there was no finish. */
  end(): void {
    if (this.isDone) return;
    const finish =
      this.#finish ??
      fail("upstream", "The provider's answer ended before it was finished.", {
        code: "truncated",
      });
    this.isDone = true;
    this.#tags?.end();
    this.#leave();
    this.#calls.end();
    if (this.#audio) this.#block({ type: "opaque", origin: ID, raw: { audio: this.#audio } });
    const calls = this.#calls.hasCalls && finish.reason === "stop";
    this.#emit(calls ? { ...finish, reason: "tool_calls" } : finish);
  }

  #choice(choice: JsonObject): void {
    const probable = asObject(choice["logprobs"]);
    const entries = asList(probable?.["content"] ?? probable?.["refusal"]);
    if (entries.length > 0) this.#logprobs ??= [];
    for (const one of entries) this.#logprobs!.push(one);
    const delta = asObject(choice["delta"]);
    if (delta) this.#delta(delta);
    const word = asText(choice["finish_reason"]);
    if (word) this.#finish = parseFinishReason(word);
  }

  #delta(d: JsonObject): void {
    const more = asList(d["reasoning_details"]);
    const thought =
      asText(d["reasoning_content"]) ?? asText(d["reasoning"]) ?? asText(d["reasoning_text"]);
    this.#details.add(more);
    if (thought) this.#plain = true;
    this.#say("reasoning", thought ?? (this.#plain ? "" : this.#details.textOf(more)));
    this.#content(d["content"]);
    this.#say("refusal", asText(d["refusal"]) ?? "");
    for (const piece of asList(d["tool_calls"])) this.#calls.addPiece(piece);
    if (d["function_call"] != null) this.#calls.addLegacyPiece(d["function_call"]);
    for (const citation of asList(d["annotations"])) {
      // What is cited after its text was left has no block to stand on.
      if (this.#channel === "text")
        this.#emit({ type: "cite", index: this.#openBlock, citation: flattenCitation(citation) });
    }
    const proof = asObject(d["extra_content"]) && textProof(d);
    if (proof && this.#channel === "text")
      this.#emit({ type: "proof", index: this.#openBlock, proof });
    for (const image of asList(d["images"])) this.#picture(image);
    const sound = asObject(d["audio"]);
    if (sound) mergeAudio((this.#audio ??= {}), sound);
  }

  #content(rawContent: Opt<Json>): void {
    if (typeof rawContent === "string")
      return this.#tags ? this.#tags.push(rawContent) : this.#say("text", rawContent);
    for (const raw of asList(rawContent)) {
      const part = asObject(raw);
      if (part?.["type"] === "thinking") this.#say("reasoning", reasoningTextOf(part["thinking"]));
      else if (part?.["type"] === "reasoning")
        this.#say(
          "reasoning",
          asList(part["summary"])
            .map((s) => asText(asObject(s)?.["text"]) ?? "")
            .join(""),
        );
      else this.#say("text", asText(part?.["text"]) ?? "");
    }
  }

  #picture(image: Json): void {
    const url = asText(asObject(asObject(image)?.["image_url"])?.["url"]);
    if (url === undefined) return;
    this.#leave();
    const index = this.#next++;
    this.#emit({ type: "open", index, block: { type: "image" } });
    this.#emit({ type: "media", index, media: parseMediaUrl(url) });
    this.#emit({ type: "close", index });
  }

  #say(wanted: Channel, words: string): void {
    if (words === "") return;
    if (this.#channel !== wanted) this.#turn(wanted);
    const index = this.#openBlock;
    const logprobs = this.#logprobs;
    if (logprobs === undefined) return this.#emit({ type: "delta", index, text: words });
    this.#logprobs = undefined;
    this.#emit({ type: "delta", index, text: words, logprobs });
  }

  #turn(wanted: Channel): void {
    if (wanted === "reasoning") this.#close();
    else this.#leave();
    this.#channel = wanted;
    this.#openBlock = this.#next++;
    this.#emit({ type: "open", index: this.#openBlock, block: { type: wanted } });
  }

  #close(): void {
    if (this.#channel === undefined) return;
    const proof = this.#channel === "reasoning" ? this.#details.takeProof() : undefined;
    if (proof) this.#emit({ type: "proof", index: this.#openBlock, proof });
    this.#emit({ type: "close", index: this.#openBlock });
    this.#channel = undefined;
  }

  /** Something else begins: reasoning that was only signed, never shown, stands before it. */
  #leave(): void {
    this.#close();
    const proof = this.#details.takeProof();
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
    const choice = asObject(raw);
    if ((choice?.["index"] ?? 0) === 0) return choice;
  }
  return undefined;
}

/** A reason to finish may stand beside it: said once more it is the same. */
function hasOnlyContent(choice: JsonObject): boolean {
  if (choice["logprobs"] != null) return false;
  const delta = asObject(choice["delta"]);
  for (const key in delta)
    if (key !== "content" && key !== "role" && delta[key] != null) return false;
  return typeof delta?.["content"] === "string";
}

/** Sound comes in pieces; its bytes and its words grow, the rest is said once. */
function mergeAudio(audio: Record<string, Json>, piece: JsonObject): void {
  for (const key in piece) {
    const now = piece[key]!;
    const grows = key === "data" || key === "transcript";
    audio[key] = grows ? (asText(audio[key]) ?? "") + (asText(now) ?? "") : now;
  }
}

/** Citations are flat everywhere but here. */
function flattenCitation(citation: Json): Json {
  const c = asObject(citation);
  const type = asText(c?.["type"]);
  const inner = type === undefined ? undefined : asObject(c?.[type]);
  return inner ? { type, ...inner } : citation;
}

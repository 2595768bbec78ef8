// Converts chunks into blocks that open and close. This protocol does not mark the end of a block.
// A block ends when another begins or when the response ends.
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
import { parseFinishReason, ID } from "../constants.ts";
import { textProof, textIn } from "../server/reasoning.ts";
import { reasoningTextOf } from "../server/content.ts";
import { usageSeen } from "../usage.ts";
import { asList, asObject, asText } from "../../json-values.ts";
import { parseMediaUrl } from "../../media-url.ts";
import { ToolCallReader } from "./tool-call-reader.ts";

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
  /** Index of the open block of the current channel. */
  #openBlock = -1;
  /** Whether reasoning came in its own field. The details then only repeat its text. */
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

  chunk(chunk: JsonObject): void {
    const usage = usageSeen(chunk, this.#traits);
    const choices = asList(chunk["choices"]);
    // One vendor begins with a chunk about the prompt, which is not yet part of the response.
    if (!this.#started && (usage || asText(chunk["id"]) || choices.length > 0)) {
      this.#started = true;
      this.#id = asText(chunk["id"]) || undefined;
      this.#emit({ type: "start", id: this.#id, model: asText(chunk["model"]) });
    }
    const choice = firstOf(choices);
    if (choice) this.#choice(choice);
    if (usage) this.#emit(usage);
  }

  /** Ends the response unless it has ended. Throws if there was no finish reason. */
  end(): void {
    if (this.isDone) return;
    const finish =
      this.#finish ??
      fail("upstream", "The provider's response ended before it was complete.", {
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
      // A citation that arrives after its text block closed has no block to attach to.
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

  /**
   * Closes the current channel because another block begins. Reasoning that was only signed and
   * never displayed is emitted before it.
   */
  #leave(): void {
    this.#close();
    const proof = this.#details.takeProof();
    if (proof) this.#block({ type: "reasoning" }, proof);
  }

  /** Emits a complete block. */
  #block(block: OpenBlock, proof?: Proof): void {
    const index = this.#next++;
    this.#emit({ type: "open", index, block });
    if (proof) this.#emit({ type: "proof", index, proof });
    this.#emit({ type: "close", index });
  }
}

/** Returns the first choice. The gateway never requests several choices in this mode. */
function firstOf(choices: readonly Json[]): JsonObject | undefined {
  for (const raw of choices) {
    const choice = asObject(raw);
    if ((choice?.["index"] ?? 0) === 0) return choice;
  }
  return undefined;
}

/** Merges a piece of audio. Its data and transcript are appended. Other members are set once. */
function mergeAudio(audio: Record<string, Json>, piece: JsonObject): void {
  for (const key in piece) {
    const now = piece[key]!;
    const grows = key === "data" || key === "transcript";
    audio[key] = grows ? (asText(audio[key]) ?? "") + (asText(now) ?? "") : now;
  }
}

/** Converts a citation to the flat form that all other protocols use. */
function flattenCitation(citation: Json): Json {
  const c = asObject(citation);
  const type = asText(c?.["type"]);
  const inner = type === undefined ? undefined : asObject(c?.[type]);
  return inner ? { type, ...inner } : citation;
}

// Reads reasoning from the places where providers put it: structured details, and tags in the text.

/**
 * Collects `reasoning_details`, in which some aggregators keep the signatures of their upstream
 * providers. The details must be returned complete and in order, so they become one proof, whose
 * content the gateway does not interpret.
 */
interface ReasoningDetails {
  add(pieces: readonly Json[]): void;
  /** Returns the text of the pieces. */
  textOf(pieces: readonly Json[]): string;
  /** Returns everything since the last call as one proof. */
  takeProof(): Proof | undefined;
}

const keyOf = ({ index, type }: JsonObject): string => JSON.stringify([index, type]);

const APPENDED_FIELDS = ["text", "summary", "data"] as const;

function createReasoningDetails(): ReasoningDetails {
  let entries: Record<string, Json | undefined>[] = [];
  /** Entries with an index, by index and type. */
  const numbered = new Map<string, Record<string, Json | undefined>>();
  return {
    add(pieces) {
      for (const raw of pieces) {
        const piece = asObject(raw);
        if (!piece) continue;
        const key = piece["index"] === undefined ? undefined : keyOf(piece);
        const last = key === undefined ? undefined : numbered.get(key);
        if (!last) {
          const entry = { ...piece };
          entries.push(entry);
          if (key !== undefined) numbered.set(key, entry);
          continue;
        }
        for (const key in piece) {
          const before = last[key];
          const now = piece[key];
          if (now === undefined || now === null) continue;
          const grows = (APPENDED_FIELDS as readonly string[]).includes(key);
          last[key] =
            grows && typeof before === "string" && typeof now === "string" ? before + now : now;
        }
      }
    },
    textOf: (pieces) => (pieces.length === 0 ? "" : textIn(pieces)),
    takeProof() {
      if (entries.length === 0) return undefined;
      const data = JSON.stringify(entries);
      entries = [];
      numbered.clear();
      return { origin: ID, kind: "reasoning_details", data };
    },
  };
}

// Extracts reasoning that is part of the text, between tags. Used only for backends that are known
// to do this, and only at the start of the text. Tags later in the text may be code that the
// response quotes.
const OPEN = "<think>";

const CLOSE = "</think>";

interface ThinkTagParser {
  push(text: string): void;
  end(): void;
}

function createThinkTagParser(
  say: (channel: "text" | "reasoning", text: string) => void,
): ThinkTagParser {
  let where: "before" | "inside" | "after" | "text" = "before";
  /** Text that may be the beginning of a tag. */
  let held = "";
  /** Whether only whitespace has arrived. */
  let blank = true;
  const push = (text: string): void => {
    const all = held + text;
    held = "";
    switch (where) {
      case "before": {
        // Whitespace in many pieces is collected without repeated trimming.
        if (text.trim() === "" && blank) {
          held = all;
          return;
        }
        const trimmed = all.trimStart();
        blank = trimmed === "";
        if (trimmed.startsWith(OPEN)) {
          where = "inside";
          return push(trimmed.slice(OPEN.length).replace(/^\n/, ""));
        }
        if (OPEN.startsWith(trimmed)) {
          held = all;
          return;
        }
        where = "text";
        return say("text", all);
      }
      case "inside": {
        const end = all.indexOf(CLOSE);
        if (end >= 0) {
          where = "after";
          say("reasoning", all.slice(0, end));
          return push(all.slice(end + CLOSE.length));
        }
        const keep = possibleCloseTagLength(all);
        held = all.slice(all.length - keep);
        return say("reasoning", all.slice(0, all.length - keep));
      }
      case "after": {
        const trimmed = all.trimStart();
        if (trimmed === "") return;
        where = "text";
        return say("text", trimmed);
      }
      case "text":
        return say("text", all);
    }
  };
  return {
    push,
    end() {
      if (held !== "") say(where === "inside" ? "reasoning" : "text", held);
      held = "";
    },
  };
}

/** Returns the number of trailing characters that may be the beginning of the closing tag. */
function possibleCloseTagLength(text: string): number {
  for (let n = Math.min(CLOSE.length - 1, text.length); n > 0; n--)
    if (CLOSE.startsWith(text.slice(-n))) return n;
  return 0;
}

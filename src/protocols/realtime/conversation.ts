// Estimates what a provider's conversation contains: text, audio, and images. The provider stores
// the conversation and reads the whole conversation for each response, so the estimate determines
// the size of a reservation.
import { inputTokens, type Usage } from "../../model/usage.ts";

/** Tokens per second of audio that the client sends: one per 100 ms. */
const HEARD_A_SECOND = 10;
/** Tokens per second of audio that the model speaks: one per 50 ms. */
export const SPOKEN_A_SECOND = 20;
/** Bytes per token of text, for an estimate. A token has at least one byte. */
const BYTES_A_TOKEN = 3;
/** Tokens of an image: expected and at most. */
const TOKENS_AN_IMAGE = 1_600;
const MAX_TOKENS_AN_IMAGE = 8_192;
/** Tokens that a provider adds to a conversation without showing them, such as markers of turns. */
const OVERHEAD = 512;
/**
 * Maximum of an estimate: more than any context window. It keeps sums finite, whatever a client
 * sends.
 */
const MAX_TOKENS = 4_194_304;

export const estimateTextTokens = (bytes: number): number => Math.ceil(bytes / BYTES_A_TOKEN);

export class ConversationEstimate {
  #expected = { input: 0, audio_in: 0, image_in: 0 };
  #max = { input: OVERHEAD, audio_in: 0, image_in: 0 };

  addText(bytes: number): void {
    this.#add("input", estimateTextTokens(bytes), bytes);
  }

  addAudio(seconds: number): void {
    // A provider may round the length of each item up.
    this.#add("audio_in", Math.ceil(seconds * HEARD_A_SECOND), Math.ceil(seconds * 12) + 1);
  }

  addImage(): void {
    this.#add("image_in", TOKENS_AN_IMAGE, MAX_TOKENS_AN_IMAGE);
  }

  /** Adds the output of a response whose usage the provider did not report. */
  addOutput(text: number, audio: number): void {
    this.#add("input", text, text);
    this.#add("audio_in", audio, audio);
  }

  /**
   * Replaces the estimate by the usage of a response, which read the whole conversation and added
   * its own output.
   */
  replace(usage: Usage): void {
    const text = (usage.input ?? 0) + (usage.cache_read ?? 0) + (usage.output ?? 0);
    const audio = (usage.audio_in ?? 0) + (usage.cache_read_audio ?? 0) + (usage.audio_out ?? 0);
    const image = (usage.image_in ?? 0) + (usage.cache_read_image ?? 0);
    this.#expected = { input: text, audio_in: audio, image_in: image };
    this.#max = { input: text + OVERHEAD, audio_in: audio, image_in: image };
  }

  get expectedUsage(): Usage {
    return { ...this.#expected };
  }

  get maxUsage(): Usage {
    return { ...this.#max };
  }

  /** Splits input tokens whose types were not reported in the proportions of the conversation. */
  split(tokens: number): Usage {
    const { audio_in: audio, image_in: image } = this.#expected;
    const all = inputTokens(this.#expected);
    if (all === 0) return { input: tokens };
    const audioTokens = Math.min(tokens, Math.ceil((tokens * audio) / all));
    const seen = Math.min(tokens - audioTokens, Math.ceil((tokens * image) / all));
    return { input: tokens - audioTokens - seen, audio_in: audioTokens, image_in: seen };
  }

  #add(unit: "input" | "audio_in" | "image_in", expected: number, max: number): void {
    this.#expected[unit] = Math.min(MAX_TOKENS, this.#expected[unit] + expected);
    this.#max[unit] = Math.min(MAX_TOKENS, this.#max[unit] + max);
  }
}

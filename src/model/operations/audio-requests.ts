// Requests for speech and for transcripts, and what their answers are made of.
import type { CommonRequest } from "../common-request.ts";
import type { FilePart, JsonObject, Opt } from "../values.ts";

/** A text to be spoken. */
export type SpeechRequest = Readonly<
  CommonRequest & {
    /** The model type. */
    operation: "speech";
    /** Text to speak. */
    input: string;
    /** As the vendor names it; an object says the id of one that was made for the client. */
    voice?: Opt<string | JsonObject>;
    /** How it shall be spoken, in words. */
    instructions?: Opt<string>;
    /** mp3, opus, aac, flac, wav, pcm. Absent: mp3. */
    format?: Opt<string>;
    /** Speed factor; 1 is normal speed. */
    speed?: Opt<number>;
  }
>;

/** A piece of a sound, in the order in which it is heard. */
export interface AudioChunk {
  /** Encoded audio, in the format of the response. */
  readonly bytes: Buffer;
}

/** A sound to be written down: in its own language, or by a route of that name in English. */
export type TranscriptRequest = Readonly<
  CommonRequest & {
    /** The model type. */
    operation: "transcript";
    /** Audio file to transcribe. */
    file: FilePart;
    /** Language of the audio, such as `en`. Default: the provider detects it. */
    language?: Opt<string>;
    /** What was said before it, or names that stand in it. */
    prompt?: Opt<string>;
    /** Sampling temperature. Default: the provider's. */
    temperature?: Opt<number>;
    /** json, text, srt, verbose_json, vtt, diarized_json. Absent: json. */
    format?: Opt<string>;
    /** What times are wanted of: word, segment. */
    granularities: readonly string[];
  }
>;

/**
 * What is known of a transcript beside its words: when each of its segments or words was said, and once, what holds for all of
 * it. `said`: as the vendor says it, with what else it knows.
 */
export type TranscriptItem =
  | {
      /** A segment of the transcript. */
      readonly type: "segment";
      /** Start of the segment, in seconds from the beginning of the audio. */
      readonly start: number;
      /** End of the segment, in seconds from the beginning of the audio. */
      readonly end: number;
      /** Text of the segment. */
      readonly text: string;
      /** The segment as the provider returned it, with fields that other protocols lack. */
      readonly raw?: Opt<JsonObject>;
    }
  | { readonly type: "word"; readonly start: number; readonly end: number; readonly text: string }
  | { readonly type: "transcript"; readonly raw: JsonObject };

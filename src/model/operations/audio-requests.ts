// Requests for speech and transcription, and the items of their responses.
import type { CommonRequest } from "../common-request.ts";
import type { FilePart, JsonObject, Opt } from "../values.ts";

/** Text to convert to speech. */
export type SpeechRequest = Readonly<
  CommonRequest & {
    /** The model type. */
    operation: "speech";
    /** Text to speak. */
    input: string;
    /** Voice, as the provider names it. An object contains the id of a custom voice. */
    voice?: Opt<string | JsonObject>;
    /** Description of how the text should be spoken. */
    instructions?: Opt<string>;
    /** Audio format: `mp3`, `opus`, `aac`, `flac`, `wav`, `pcm`. Default: `mp3`. */
    format?: Opt<string>;
    /** Speed factor; 1 is normal speed. */
    speed?: Opt<number>;
  }
>;

/** A piece of audio. Pieces are in playback order. */
export interface AudioChunk {
  /** Encoded audio, in the format of the response. */
  readonly bytes: Buffer;
}

/**
 * Audio to transcribe in its own language, or to translate into English on the translation route.
 */
export type TranscriptRequest = Readonly<
  CommonRequest & {
    /** The model type. */
    operation: "transcript";
    /** Audio file to transcribe. */
    file: FilePart;
    /** Language of the audio, such as `en`. Default: the provider detects it. */
    language?: Opt<string>;
    /** Text that precedes the audio, or names that occur in it. */
    prompt?: Opt<string>;
    /** Sampling temperature. Default: the provider's. */
    temperature?: Opt<number>;
    /**
     * Response format: `json`, `text`, `srt`, `verbose_json`, `vtt`, `diarized_json`. Default:
     * `json`.
     */
    format?: Opt<string>;
    /** Elements for which timestamps are requested: `word`, `segment`. */
    granularities: readonly string[];
  }
>;

/**
 * Details of a transcript in addition to its text: the times of segments or words, and one item
 * with the data of the whole transcript. `raw`: the data in the form that the provider returned,
 * including fields that other protocols do not have.
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

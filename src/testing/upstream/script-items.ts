// What a speech holds and how a wire is asked to say it: all that the wires of the fake upstream know of it.
import type { FinishReason } from "../../model/event.ts";
import type { Usage } from "../../model/usage.ts";
import type { Json } from "../../model/values.ts";

/** One thing that the model says: a text, a refusal, a thought or a call of a tool. */
export type ScriptItem =
  | { readonly type: "text" | "refusal"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string; readonly proof: string | undefined }
  | {
      readonly type: "call";
      readonly id: string | undefined;
      readonly name: string;
      readonly args: string;
      readonly custom: boolean;
    };

/** Everything that a wire needs to know of a speech. */
export interface ScriptOutput {
  readonly items: readonly ScriptItem[];
  readonly usage: Usage | undefined;
  readonly finish: FinishReason | undefined;
  readonly sequence: string | undefined;
  readonly model: string | undefined;
  /** The stream ends in an error instead of a finish. */
  readonly error: string | undefined;
}

/** How a wire is asked to say it. */
export interface FormatOptions {
  readonly stream: boolean;
  readonly model: string;
  /** Tells the answers of one upstream apart in ids. */
  readonly responseNumber: number;
  /** The request that is answered. */
  readonly body: { readonly [field: string]: Json | undefined };
}

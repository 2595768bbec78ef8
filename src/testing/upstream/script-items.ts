// Types of a script's content and of the options for sending it. The format writers of the fake
// upstream use only these.
import type { FinishReason } from "../../model/event.ts";
import type { Usage } from "../../model/usage.ts";
import type { Json } from "../../model/values.ts";

/** One output item of the model: a text, a refusal, reasoning, or a tool call. */
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

/** Content of a script that a format writer needs. */
export interface ScriptOutput {
  readonly items: readonly ScriptItem[];
  readonly usage: Usage | undefined;
  readonly finish: FinishReason | undefined;
  readonly sequence: string | undefined;
  readonly model: string | undefined;
  /** Message of the error that ends the stream instead of a finish. */
  readonly error: string | undefined;
}

/** Options for writing a script in an API format. */
export interface FormatOptions {
  readonly stream: boolean;
  readonly model: string;
  /** Number of the response, which makes its IDs unique within one upstream. */
  readonly responseNumber: number;
  /** Body of the request that is answered. */
  readonly body: { readonly [field: string]: Json | undefined };
}

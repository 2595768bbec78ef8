import type { Check, ScriptProtocol } from "tollgate/testing";
import type { JsonObject } from "tollgate/plugin";
import type { Package } from "./install.ts";
import type { Command, Stage } from "./stage.ts";

/** What tells one client from another; what is asked of all of them is in turns.ts. */
export interface Client {
  /** As one asks for it. */
  readonly name: string;
  readonly package: Package;
  /** One model it has never heard of, one it takes for a model it knows: it writes other requests for that. */
  readonly models: readonly [unknown: string, known: string];
  asks(of: Question): Promise<Command>;
  reads(path: string): Call;
  looks(path: string): Call;
  /** The fields that a request loses on the way to this protocol; with a picture in it, these as well. */
  loses(spoken: ScriptProtocol, model: string): readonly string[];
  losesOfPictures(spoken: ScriptProtocol): readonly string[];
  /** Whether thoughts of earlier turns come along when a conversation goes on. */
  readonly keepsThoughts: boolean;
  /** What no other client does. */
  readonly own: (of: Setting) => Check[];
}

/** Where the checks of one client on one protocol are played. */
export interface Setting {
  readonly client: Client;
  /** The script that starts the client. */
  readonly script: string;
  readonly at: Stage;
  readonly spoken: ScriptProtocol;
}

export interface Question extends Setting {
  /** The client's home and the folder it works in. */
  readonly cwd: string;
  readonly model: string;
  readonly words: string;
  /** Goes on with the last conversation. */
  readonly again?: boolean;
  /** Lines of configuration that are not the usual ones. */
  readonly config?: string;
}

/** What a model calls, by the client's own names. */
export interface Call {
  readonly tool: string;
  readonly args: JsonObject;
}

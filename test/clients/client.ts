import type { Check, ScriptProtocol } from "tollgate/testing";
import type { JsonObject } from "tollgate/plugin";
import type { Package } from "./install.ts";
import type { Command, Stage } from "./stage.ts";

/** Differences between clients. turns.ts contains the common checks. */
export interface Client {
  /** Name on the command line. */
  readonly name: string;
  readonly package: Package;
  /** One unknown model, and one whose name it knows: it sends different requests for that. */
  readonly models: readonly [unknown: string, known: string];
  asks(of: Question): Promise<Command>;
  reads(path: string): Call;
  looks(path: string): Call;
  /** Fields that a request loses in translation to this protocol, and more with an image. */
  loses(spoken: ScriptProtocol, model: string): readonly string[];
  losesOfPictures(spoken: ScriptProtocol): readonly string[];
  /** Whether reasoning of earlier turns is sent when a conversation continues. */
  readonly keepsThoughts: boolean;
  /** Features of this client only. */
  readonly own: (of: Setting) => Check[];
}

/** The environment for the checks of one client with one protocol. */
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
  /** Resumes the last conversation. */
  readonly again?: boolean;
  /** Additional lines of configuration. */
  readonly config?: string;
}

/** Tools that a model calls, by the client's own names. */
export interface Call {
  readonly tool: string;
  readonly args: JsonObject;
}

import type { Span } from "../lib/json.ts";
import type { Body } from "../model/values.ts";
import type { RouteInput } from "../plugin/frontend.ts";
import type { Op } from "../plugin/protocol.ts";
import type { Survey } from "../plugin/survey.ts";
import type { Target } from "../plugin/store.ts";
import type { FormLayout } from "./form/body.ts";

/** What the body turned out to be. */
export interface ReceivedBody {
  raw: Buffer;
  /** Of all that upstream may read: what the client sent, and what the frontend put in for it. */
  bytes: number;
  /** Where the members of a JSON text stand. */
  spans: ReadonlyMap<string, Span> | null;
  /** Where the fields of a form stand. */
  form: FormLayout | undefined;
  body: Body;
  survey: Survey;
  model: string;
  /** Set when a route's `read` names the candidate that must answer. */
  pinned: Pick<Target, "provider" | "model" | "credential"> | undefined;
  stream: boolean;
  op: Op;
  name: string;
  /** As the client sent it: what `raw` says. */
  sent: Body;
  /** What the frontend's read put in place of the client's own fields; `body` has them. */
  edits: Body | undefined;
  record: RouteInput["record"];
}

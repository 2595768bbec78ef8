import type { Span } from "../../lib/json/json-scanner.ts";
import type { Body } from "../../model/values.ts";
import type { RouteInput } from "../../plugin/frontend.ts";
import type { ActionType } from "../../plugin/protocol.ts";
import type { RequestFacts } from "../../plugin/request-facts.ts";
import type { CallTarget } from "../../plugin/store/store.ts";
import type { MultipartLayout } from "./multipart-body.ts";

/** What the body turned out to be. */
export interface ReceivedBody {
  raw: Buffer;
  /** Of all that upstream may read: what the client sent, and what the frontend put in for it. */
  inputBytes: number;
  /** Where the members of a JSON text stand. */
  spans: ReadonlyMap<string, Span> | null;
  /** Where the fields of a form stand. */
  multipart: MultipartLayout | undefined;
  body: Body;
  facts: RequestFacts;
  model: string;
  /** Set when a route's `read` names the candidate that must answer. */
  pinnedTarget: Pick<CallTarget, "provider" | "model" | "credential"> | undefined;
  stream: boolean;
  actionType: ActionType;
  action: string;
  /** As the client sent it: what `raw` says. */
  originalBody: Body;
  /** What the frontend's read put in place of the client's own fields; `body` has them. */
  edits: Body | undefined;
  record: RouteInput["record"];
}

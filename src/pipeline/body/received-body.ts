import type { Span } from "../../lib/json/json-scanner.ts";
import type { Body } from "../../model/values.ts";
import type { RouteInput } from "../../plugin/frontend.ts";
import type { ActionType } from "../../plugin/protocol.ts";
import type { RequestFacts } from "../../plugin/request-facts.ts";
import type { CallTarget } from "../../plugin/store/store.ts";
import type { MultipartLayout } from "./multipart-body.ts";

/** The body of a request and everything that was derived from it. */
export interface ReceivedBody {
  raw: Buffer;
  /**
   * Size in bytes of everything that the provider may read: the client's body, and the content that
   * the frontend added.
   */
  inputBytes: number;
  /** Positions of the members in the JSON text. */
  spans: ReadonlyMap<string, Span> | null;
  /** Positions of the fields in the form. */
  multipart: MultipartLayout | undefined;
  body: Body;
  facts: RequestFacts;
  model: string;
  /** The target that must serve the request. Set when a route's `read` names it. */
  pinnedTarget: Pick<CallTarget, "provider" | "model" | "credential"> | undefined;
  stream: boolean;
  actionType: ActionType;
  action: string;
  /** The body as the client sent it, equal to `raw`. */
  originalBody: Body;
  /** Fields with which the frontend's `read` replaced the client's own. `body` contains them. */
  edits: Body | undefined;
  record: RouteInput["record"];
}

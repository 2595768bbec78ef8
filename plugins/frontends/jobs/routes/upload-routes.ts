// Routes of /v1/uploads, for large files that clients send in parts.
import {
  fail,
  type Body,
  type FormPart,
  type Json,
  type RequestHead,
  type Route,
} from "tollgate/plugin";
import { openaiFiles } from "./file-formats.ts";
import { discardOnError } from "./file-routes.ts";
import { readUpload } from "../file-upload.ts";
import { ownerOf } from "../owned-records.ts";
import { openaiPaths } from "../../route-paths.ts";
import {
  idOf,
  ok,
  readKeepMs,
  readPurpose,
  readText,
  rejectZeroRetention,
} from "./request-fields.ts";
import type { StoredUpload } from "../storage.ts";
import type { UploadService } from "../upload-service.ts";

const HOUR_MS = 3_600_000;

export function uploadRoutes(uploads: UploadService): readonly Route[] {
  return [
    {
      method: "POST",
      path: openaiPaths("/uploads"),
      body: "json",
      async handle(x: RequestHead, body: Body) {
        rejectZeroRetention(x);
        const info = {
          filename: readText(body, "filename"),
          mime: readText(body, "mime_type"),
          purpose: readPurpose(body["purpose"]),
        };
        const bytes = body["bytes"];
        if (!(Number.isSafeInteger(bytes) && Number(bytes) > 0))
          fail("invalid", "bytes must be a positive whole number.", { param: "bytes" });
        const { anchor, seconds } = (body["expires_after"] ?? {}) as Body;
        const upload = await uploads.begin(ownerOf(x), info, {
          bytes: Number(bytes),
          keepMs: readKeepMs(info.purpose, anchor, seconds),
          expiresAt: Date.now() + HOUR_MS,
        });
        return ok(encodeUpload(upload, null));
      },
    },
    {
      method: "POST",
      path: openaiPaths("/uploads/:id/parts"),
      body: "parts",
      async handle(x: RequestHead, parts: AsyncIterable<FormPart>) {
        rejectZeroRetention(x);
        const owner = ownerOf(x);
        const upload = await uploads.find(owner, idOf(x));
        using part = uploads.beginPart(owner, upload);
        const { bytes } = await readUpload(parts, "data", part);
        const id = await discardOnError(part, () => part.finish(bytes));
        return ok({
          id: `part_${id}`,
          object: "upload.part",
          created_at: Math.floor(Date.now() / 1_000),
          upload_id: `upload_${upload.id}`,
        });
      },
    },
    {
      method: "POST",
      path: openaiPaths("/uploads/:id/complete"),
      body: "json",
      async handle(x: RequestHead, body: Body) {
        rejectZeroRetention(x);
        const owner = ownerOf(x);
        const upload = await uploads.find(owner, idOf(x));
        const { part_ids: ids, md5 } = body;
        if (!Array.isArray(ids) || !ids.every((id) => typeof id === "string"))
          return fail("invalid", "part_ids must be a list of IDs.", { param: "part_ids" });
        if (md5 !== undefined && md5 !== null && typeof md5 !== "string")
          return fail("invalid", "md5 must be text.", { param: "md5" });
        const file = await uploads.complete(owner, upload, ids, md5 ?? undefined);
        return ok(encodeUpload({ ...upload, state: "completed" }, openaiFiles.encode(file)));
      },
    },
    {
      method: "POST",
      path: openaiPaths("/uploads/:id/cancel"),
      async handle(x) {
        const upload = await uploads.find(ownerOf(x), idOf(x));
        return ok(encodeUpload(await uploads.cancel(upload), null));
      },
    },
  ];
}

const encodeUpload = (
  { id, bytes, createdAt, expiresAt, state, info: { filename, purpose } }: StoredUpload,
  file: Json,
): Json => ({
  id: `upload_${id}`,
  object: "upload",
  bytes,
  created_at: Math.floor(createdAt / 1_000),
  expires_at: Math.floor(expiresAt / 1_000),
  filename,
  purpose,
  // Clients know no state between these two.
  status: state === "completing" ? "pending" : state,
  file,
});

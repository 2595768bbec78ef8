// Frontend for /v1/files and /v1/uploads: stores the files of clients, encrypted, until their owner
// deletes them or they expire. One path serves the SDKs of OpenAI and Anthropic.
import {
  defineFrontend,
  fail,
  type Body,
  type FormPart,
  type Json,
  type RequestHead,
  type Route,
  type RouteResponse,
} from "tollgate/plugin";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { anthropicFiles, openaiFiles, type FileFormat } from "./files/file-formats.ts";
import { FileService, type FileInfo, type StoredUpload } from "./files/file-service.ts";
import { readUpload } from "./files/file-upload.ts";
import { ownerOf } from "./files/owned-records.ts";
import { azurePaths, versionedPaths } from "./route-paths.ts";

const openai = images().server!;
const anthropic = messages().server!;

const HOUR_MS = 3_600_000;
const MIB = 1024 * 1024;
/** Files of batches expire after 30 days by default, as OpenAI's do. */
const BATCH_FILE_MS = 30 * 24 * HOUR_MS;
const MIN_EXPIRY_S = 3_600;
const MAX_EXPIRY_S = 2_592_000;
const PURPOSES = ["assistants", "batch", "fine-tune", "vision", "user_data", "evals"];

const isAnthropicClient = (x: RequestHead): boolean => x.headers["anthropic-version"] !== undefined;
const formatFor = (x: RequestHead): FileFormat =>
  isAnthropicClient(x) ? anthropicFiles : openaiFiles;
const pathsOf = (path: string) => [...versionedPaths(path), ...azurePaths(path)];
const ok = (body: Json): RouteResponse => ({ status: 200, body });
const idOf = (x: RequestHead): string => x.params["id"] ?? "";

export default defineFrontend({
  api: 1,
  name: "files",
  summary: "Store the files of clients, encrypted",
  stability: "experimental",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      accept: acceptOption("bearer", "x-api-key", "api-key"),
      max_file_mb: {
        type: "integer",
        minimum: 1,
        maximum: 8_192,
        default: 512,
        description: "Maximum size of a file, in MiB",
      },
      max_account_mb: {
        type: "integer",
        minimum: 1,
        maximum: 1_048_576,
        default: 10_240,
        description: "Maximum size of all files of an account, or of a key without one, in MiB",
      },
    },
  },
  setup({ accept: schemes, max_file_mb: fileMb, max_account_mb: accountMb }, ctx) {
    const files = new FileService(ctx, { fileBytes: fileMb * MIB, ownerBytes: accountMb * MIB });
    ctx.runEvery(HOUR_MS, () => files.sweep());
    return {
      extractCredential: (headers) => extractCredential(headers, schemes),
      encodeFault: (fault, x) =>
        (isAnthropicClient(x) ? anthropic : openai).encodeFault(fault, { id: x.id }),
      routes: [...fileRoutes(files), ...uploadRoutes(files)],
    };
  },
});

function fileRoutes(files: FileService): readonly Route[] {
  const [all, one] = [pathsOf("/files"), pathsOf("/files/:id")];
  return [
    {
      method: "POST",
      path: all,
      body: "parts",
      async handle(x: RequestHead, parts: AsyncIterable<FormPart>) {
        rejectZeroRetention(x);
        const file = await files.begin(ownerOf(x));
        const upload = await readUpload(parts, "file", file);
        const { filename, mime, bytes } = upload;
        const createdAt = Date.now();
        const readInfo = (): FileInfo => {
          if (isAnthropicClient(x)) return { filename, mime, purpose: "user_data" };
          const { purpose, keepMs } = readFormFields(upload.fields);
          const expiresAt = keepMs === undefined ? undefined : createdAt + keepMs;
          return { filename, mime, purpose, expiresAt };
        };
        return discardOnError(file, async () =>
          ok(formatFor(x).encode(await file.finish(bytes, createdAt, readInfo()))),
        );
      },
    },
    {
      method: "GET",
      path: all,
      handle: async (x) => ok(formatFor(x).encodePage(await files.list(ownerOf(x)), x)),
    },
    {
      method: "GET",
      path: one,
      handle: async (x) => ok(formatFor(x).encode(await files.find(ownerOf(x), idOf(x)))),
    },
    {
      method: "DELETE",
      path: one,
      async handle(x) {
        const file = await files.find(ownerOf(x), idOf(x));
        await files.delete(file);
        return ok(formatFor(x).encodeDeleted(file.id));
      },
    },
    {
      method: "GET",
      path: one.map((path) => `${path}/content`),
      async handle(x) {
        const owner = ownerOf(x);
        const file = await files.find(owner, idOf(x));
        return {
          status: 200,
          headers: {
            "content-type": "application/octet-stream",
            "content-length": String(file.bytes),
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
          },
          body: await files.read(owner, file),
        };
      },
    },
  ];
}

/** Routes of large files, which clients send in parts. */
function uploadRoutes(files: FileService): readonly Route[] {
  return [
    {
      method: "POST",
      path: pathsOf("/uploads"),
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
        const upload = await files.beginUpload(ownerOf(x), info, {
          bytes: Number(bytes),
          keepMs: readKeepMs(info.purpose, anchor, seconds),
          expiresAt: Date.now() + HOUR_MS,
        });
        return ok(encodeUpload(upload, null));
      },
    },
    {
      method: "POST",
      path: pathsOf("/uploads/:id/parts"),
      body: "parts",
      async handle(x: RequestHead, parts: AsyncIterable<FormPart>) {
        rejectZeroRetention(x);
        const owner = ownerOf(x);
        const upload = await files.findUpload(owner, idOf(x));
        const part = files.beginPart(owner, upload);
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
      path: pathsOf("/uploads/:id/complete"),
      body: "json",
      async handle(x: RequestHead, body: Body) {
        rejectZeroRetention(x);
        const owner = ownerOf(x);
        const upload = await files.findUpload(owner, idOf(x));
        const { part_ids: ids, md5 } = body;
        if (!Array.isArray(ids) || !ids.every((id) => typeof id === "string"))
          return fail("invalid", "part_ids must be a list of IDs.", { param: "part_ids" });
        if (md5 !== undefined && md5 !== null && typeof md5 !== "string")
          return fail("invalid", "md5 must be text.", { param: "md5" });
        const file = await files.completeUpload(owner, upload, ids, md5 ?? undefined);
        return ok(encodeUpload({ ...upload, state: "completed" }, openaiFiles.encode(file)));
      },
    },
    {
      method: "POST",
      path: pathsOf("/uploads/:id/cancel"),
      async handle(x) {
        const upload = await files.findUpload(ownerOf(x), idOf(x));
        return ok(encodeUpload(await files.cancelUpload(upload), null));
      },
    },
  ];
}

const encodeUpload = (
  { id, bytes, createdAt, expiresAt, state, file: { filename, purpose } }: StoredUpload,
  file: Json,
): Json => ({
  id: `upload_${id}`,
  object: "upload",
  bytes,
  created_at: Math.floor(createdAt / 1_000),
  expires_at: Math.floor(expiresAt / 1_000),
  filename,
  purpose,
  status: state,
  file,
});

function rejectZeroRetention(x: RequestHead): void {
  if (x.privacy !== "off")
    fail("privacy", "Files are stored, so they are not accepted with zero data retention.");
}

/** Deletes content whose record cannot be written. */
async function discardOnError<T>(
  content: { discard(): Promise<void> },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await content.discard();
    throw error;
  }
}

function readText(body: Body, name: string): string {
  const value = body[name];
  if (typeof value !== "string" || value === "" || Buffer.byteLength(value) > 512)
    return fail("invalid", `${name} must be text of up to 512 bytes.`, { param: name });
  return value;
}

function readPurpose(value: unknown): string {
  if (typeof value !== "string" || !PURPOSES.includes(value))
    return fail("invalid", `purpose must be one of ${PURPOSES.join(", ")}.`, { param: "purpose" });
  return value;
}

/** Reads the fields of OpenAI's form. */
function readFormFields(fields: ReadonlyMap<string, string>): {
  readonly purpose: string;
  readonly keepMs: number | undefined;
} {
  const purpose = readPurpose(fields.get("purpose"));
  const seconds = fields.get("expires_after[seconds]");
  const anchor = fields.get("expires_after[anchor]");
  return { purpose, keepMs: readKeepMs(purpose, anchor, seconds && Number(seconds)) };
}

/** Returns the time after which a file expires, in milliseconds. */
function readKeepMs(purpose: string, anchor: unknown, seconds: unknown): number | undefined {
  if (anchor === undefined && seconds === undefined)
    return purpose === "batch" ? BATCH_FILE_MS : undefined;
  if (anchor !== "created_at")
    fail("invalid", "expires_after.anchor must be created_at.", { param: "expires_after[anchor]" });
  const after = Number(seconds);
  if (!(Number.isInteger(after) && after >= MIN_EXPIRY_S && after <= MAX_EXPIRY_S))
    fail("invalid", `expires_after.seconds must be from ${MIN_EXPIRY_S} to ${MAX_EXPIRY_S}.`, {
      param: "expires_after[seconds]",
    });
  return after * 1_000;
}

// Reads an upload: the file is stored as it arrives, whatever the order of the fields is.
import { fail, type FormPart } from "tollgate/plugin";
import { releasePieces } from "./blobs/release-pieces.ts";

/** Maximum size of a field that is not a file, in bytes. */
const MAX_FIELD_BYTES = 4_096;
const MAX_FIELDS = 16;
const MAX_FILENAME_BYTES = 512;
const MAX_MIME_BYTES = 255;

/** A form with one file. */
export interface FileUpload {
  readonly fields: ReadonlyMap<string, string>;
  readonly filename: string;
  readonly mime: string;
  readonly bytes: number;
}

/** Destination of the content of a file. */
interface FileTarget {
  /** Writes the content and returns its size. Leaves nothing if it fails. */
  write(content: AsyncIterable<Uint8Array>): Promise<number>;
  discard(): Promise<void>;
}

/**
 * Reads a form with one file. If the form turns out to be invalid, its content is discarded.
 * @param field Name of the file's field.
 */
export async function readUpload(
  parts: AsyncIterable<FormPart>,
  field: string,
  target: FileTarget,
): Promise<FileUpload> {
  const fields = new Map<string, string>();
  let file: Omit<FileUpload, "fields"> | undefined;
  try {
    for await (const { name, filename, mime, content } of parts) {
      if (fields.has(name) || (name === field && file))
        fail("invalid", `The form has more than one "${name}".`, { param: name });
      if (name !== field) {
        if (fields.size === MAX_FIELDS)
          fail("invalid", `The form has more than ${MAX_FIELDS} fields.`);
        fields.set(name, await readField(name, content));
        continue;
      }
      const checked = checkFilename(field, filename);
      const type = mime ?? "application/octet-stream";
      if (Buffer.byteLength(type) > MAX_MIME_BYTES)
        fail("invalid", `The content type is longer than ${MAX_MIME_BYTES} bytes.`, {
          param: field,
        });
      file = { filename: checked, mime: type, bytes: await target.write(releasePieces(content)) };
    }
    return { fields, ...(file ?? fail("invalid", `Missing "${field}".`, { param: field })) };
  } catch (error) {
    if (file) await target.discard();
    throw error;
  }
}

function checkFilename(field: string, filename: string | undefined): string {
  if (filename === undefined || filename === "")
    return fail("invalid", `"${field}" must be a file with a name.`, { param: field });
  if (Buffer.byteLength(filename) > MAX_FILENAME_BYTES)
    fail("invalid", `The file name is longer than ${MAX_FILENAME_BYTES} bytes.`, { param: field });
  return filename;
}

async function readField(name: string, content: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of content) {
    bytes += piece.length;
    if (bytes > MAX_FIELD_BYTES)
      fail("too_large", `"${name}" is longer than ${MAX_FIELD_BYTES} bytes.`, { param: name });
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

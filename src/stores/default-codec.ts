import { brotliCompressSync, brotliDecompressSync, constants } from "node:zlib";
import { type Codec, compressing, jsonCodec } from "../base/envelope.ts";
import { LIMITS } from "../core/limits.ts";

const brotli = {
  thresholdBytes: LIMITS.compressAboveBytes,
  compress: (bytes: Uint8Array): Uint8Array =>
    brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  // Twice the limit of one value, in UTF-8: a few bytes must not be able to ask for gigabytes.
  decompress: (bytes: Uint8Array): Uint8Array =>
    brotliDecompressSync(bytes, { maxOutputLength: LIMITS.valueBytes * 2 }),
};

/** How values are kept unless somebody says otherwise: readable JSON, compressed when large. */
export const defaultCodec: Codec = compressing(jsonCodec, brotli);

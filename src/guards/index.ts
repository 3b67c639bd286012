export { contentOf, type FileContent } from "../files/atomic-file.ts";
export { type CommentOptions, type Comments, comment } from "./comment.ts";
export { type CreateIfAbsentOptions, createIfAbsent } from "./create-if-absent.ts";
export { type Committed, type GitCommitOptions, gitCommit } from "./git-commit.ts";
export { type InsertDatabase, type InsertedRow, type InsertOnceOptions, insertOnce } from "./insert-once.ts";
export { type NotifyOnceOptions, notifyOnce } from "./notify-once.ts";
export { onceByFile } from "./once-by-file.ts";
export { repeatable } from "./repeatable.ts";
export { type WriteFileOptions, type WrittenFile, writeFile } from "./write-file.ts";

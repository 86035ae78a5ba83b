"""Settings of Spark that change no row and no value of a table, and the defaults of SQL's others.

Whatever is not listed as harmless counts as changing rows. What decides the order of rows alone, or how a sum of floats
is rounded, changes nothing: no query may rely on either.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from engine.secrets.scrubber import names_secret_setting

# Of Spark's core: its processes, their machines and memory, what they tell; a name with a dot is a prefix.
_CORE: Final = """
acls. admin. api.mode app. appStateStore. archives authenticate barrier. blacklist. blockManager. broadcast. buffer.
checkpoint. cleaner. closure. cores.max decommission. default.parallelism deploy. diskStore. driver. driverEnv.
dynamicAllocation. eventLog. excludeOnFailure. executor. executorEnv. extraListeners files files.fetchTimeout
files.maxPartitionBytes files.openCostInBytes files.overwrite files.useFetchCache history. io. jars jars. kafka.
kerberos. kryo kryo. kryoserializer. kubernetes. launcher. local. locality. log. logConf logLineage master memory.
metrics. modify. network. networkTimeout port. proxy. pyspark. python. r. rdd. reducer. redaction. repl. resources.
rpc. scheduler. security. serializer shuffle. speculation speculation. ssl. stage. standalone. storage. streaming.
submit. task. ui. unsafe. user. worker. yarn.
"""
# Of Hadoop: how files are reached; which files a folder has (input formats, path filters) is not.
_HADOOP: Final = """
dfs. fs. ha. hadoop.caller. hadoop.security. hadoop.tmp. hive.metastore. io. ipc. javax.
mapreduce.fileoutputcommitter. mapreduce.job. net. parquet.memory. yarn.
"""
# Another store, or another file system for paths without a scheme: other files.
_OTHER_PLACES: Final = ("endpoint", "defaultfs", "default.name")
# Of SQL: how a plan is executed, state and logs kept, progress reported.
_SQL: Final = """
adaptive. addPartitionInBatch. analyzer.maxIterations artifact. autoBroadcastJoinThreshold avro.compression.
avro.deflate. avro.xz. avro.zstandard. broadcastExchange. broadcastTimeout bucketing. cache. cartesianProductExec.
cbo. classic. cli. codegen. columnVector. connect. dataFrameQueryContext. dataframeCache. debug debug.
defaultCacheStorageLevel defaultSizeInBytes error.messageFormat event. exchange. execution.arrow.
execution.broadcastHashJoin. execution.interruptOnCancel execution.pandas.udf. execution.pyspark. execution.python.
execution.rangeExchange. execution.removeRedundantProjects execution.removeRedundantSorts
execution.replaceHashWithSortAgg execution.reuseSubquery execution.topKSortFallbackThreshold
execution.useObjectHashAggregateExec execution.usePartitionEvaluator expressionTreeChangeLog.
extendedExplainProviders files.maxPartitionBytes files.maxPartitionNum files.maxRecordsPerFile files.minPartitionNum
files.openCostInBytes filesourceTableRelationCacheSize iceberg.advisory-partition-size iceberg.data-planning-mode
iceberg.delete-planning-mode iceberg.executor-cache. iceberg.locality. iceberg.planning. iceberg.vectorization.
inMemoryColumnarStorage. inMemoryTableScanStatistics. join.preferSortMergeJoin leafNodeDefaultParallelism limit.
maven. maxBroadcastTableSize maxConcurrentOutputFileWriters maxMetadataStringLength maxPlanStringLength
maxSinglePartitionBytes nameResolutionLog. objectHashAggregate. optimizer.dynamicPartitionPruning.
optimizer.expressionProjectionCandidateLimit optimizer.inSetConversionThreshold optimizer.inSetSwitchThreshold
optimizer.maxIterations optimizer.nestedSchemaPruning. optimizer.runtime. optimizer.runtimeFilter.
optimizer.windowGroupLimitThreshold orc.columnarReaderBatchSize orc.columnarWriterBatchSize orc.compression.
orc.enableNestedColumnVectorizedReader orc.enableVectorizedReader orc.filterPushdown parquet.columnarReaderBatchSize
parquet.compression. parquet.enableNestedColumnVectorizedReader parquet.enableVectorizedReader
parquet.filterPushdown parquet.filterPushdown. parquet.pushdown. parquet.recordLevelFilter.
parser.manageParserCaches parser.parserDfaCacheFlushRatio parser.parserDfaCacheFlushThreshold pipelines.
planChangeLog. planChangeValidation planner. pyspark. queryExecutionListeners redaction. repl. resultQueryStage.
scriptTransformation. session.localRelationBatchOfChunksSizeBytes session.localRelationCacheThreshold
session.localRelationChunkSizeBytes session.localRelationChunkSizeLimit session.localRelationChunkSizeRows
session.localRelationSizeLimit sessionWindow.buffer. shuffle. shuffleDependency. shuffleExchange.
shuffledHashJoinFactor sort. sortMergeJoinExec. sources.bucketing. sources.fileCompressionFactor
sources.ignoreDataLocality sources.parallelPartitionDiscovery. sources.v2.bucketing. stackTracesInDataFrameContext
statistics. streaming.asyncLogPurge. streaming.checkpoint.fileChecksum. streaming.continuous.
streaming.fileSink.log. streaming.fileSource.cleaner. streaming.fileSource.log. streaming.maxBatchesToRetainInMemory
streaming.metadataCache. streaming.metricsEnabled streaming.minBatchesToRetain streaming.noDataProgressEventInterval
streaming.numRecentProgressUpdates streaming.pollingDelay streaming.ratioExtraSpaceAllowedInCheckpoint
streaming.stateStore.compression. streaming.stateStore.coordinatorReportSnapshotUploadLag
streaming.stateStore.maintenanceInterval streaming.stateStore.maintenanceProcessingTimeout
streaming.stateStore.maintenanceShutdownTimeout streaming.stateStore.maxLaggingStoresToReport
streaming.stateStore.maxNumStateSchemaFiles streaming.stateStore.maxVersionsToDeletePerMaintenance
streaming.stateStore.minDeltasForSnapshot streaming.stateStore.multiplierForMinTimeDiffToLog
streaming.stateStore.multiplierForMinVersionDiffToLog streaming.stateStore.numStateStoreInstanceMetricsToReport
streaming.stateStore.numStateStoreMaintenanceThreads streaming.stateStore.providerClass
streaming.stateStore.rocksdb. streaming.stateStore.snapshotLagReportInterval streaming.stateStore.unloadOnCommit
streaming.stopActiveRunOnRestart streaming.stopTimeout streaming.streamingQueryListeners streaming.ui.
subexpressionElimination.cache. subquery. thriftServer. thriftserver. ui. warehouse.dir windowExec.
"""


def _names_and_prefixes(prefix: str, names: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The whole names of a list, and its prefixes, in lower case."""
    full_names = [f"{prefix}{name}".lower() for name in names.split()]
    return frozenset(n for n in full_names if n[-1] != "."), tuple(n for n in full_names if n[-1] == ".")


_HARMLESS: Final = tuple(
    _names_and_prefixes(prefix, names)
    for prefix, names in (("spark.", _CORE), ("spark.hadoop.", _HADOOP), ("spark.sql.", _SQL))
)
# Spark ignores what does not begin so.
_OF_SPARK: Final = "spark."


@cache
def changes_nothing(key: str) -> bool:
    """Return whether a setting is known to change no row: it is not Spark's, a credential, or listed here."""
    lower = key.lower()
    if not lower.startswith(_OF_SPARK) or names_secret_setting(key):
        return True
    if lower.startswith("spark.hadoop.fs.") and lower.endswith(_OTHER_PLACES):
        return False
    return any(lower in names or lower.startswith(prefixes) for names, prefixes in _HARMLESS)


# The values that Spark 4.1 gives to settings of SQL that may change rows (SQLConf); a test compares them with Spark's.
_TRUE: Final = """
    allowNamedFunctionArguments analyzer.dontDeduplicateExpressionIfExprIdInOutput analyzer.failAmbiguousSelfJoin
    analyzer.preferColumnOverLcaInArrayIndex analyzer.scalarSubqueryAllowGroupByColumnEqualToConstant
    analyzer.singlePassResolver.relationBridging.enabled analyzer.singlePassResolver.runExtendedResolutionChecks
    analyzer.singlePassResolver.runHeavyExtendedResolutionChecks analyzer.singlePassResolver.validationEnabled
    analyzer.sqlFunctionResolution.applyConfOverrides analyzer.unionIsResolvedWhenDuplicatesPerChildResolved
    analyzer.uniqueNecessaryMetadataColumns ansi.enabled assumeAnsiFalseIfNotPersisted.enabled
    avro.filterPushdown.enabled chunkBase64String.enabled constraintPropagation.enabled crossJoin.enabled
    csv.filterPushdown.enabled csv.parser.columnPruning.enabled cteRelationDefMaxRows.enabled
    dataSource.alwaysCreateV2Predicate dataSource.skipAssertOnPredicatePushdown decimalOperations.allowPrecisionLoss
    defaultColumn.enabled defaultColumn.useNullsForMissingDefaultValues defaultUrlStreamHandlerFactory.enabled
    enforceTypeCoercionBeforeUnionDeduplication.enabled execution.datasources.hadoopLineRecordReader.enabled
    execution.pandas.convertToArrowArraySafely execution.sortBeforeRepartition extensions.test.loadFromCp
    files.supportSecondOffsetFormat groupByAliases groupByOrdinal hive.advancedPartitionPredicatePushdown.enabled
    hive.gatherFastStats hive.manageFilesourcePartitions hive.metastorePartitionPruning icu.caseMappings.enabled
    json.enableExactStringParsing json.enablePartialResults json.filterPushdown.enabled
    jsonGenerator.ignoreNullFields jsonGenerator.writeNullIfWithDefaultValue
    lateralColumnAlias.enableImplicitResolution lazySetOperatorOutput.enabled
    legacy.execution.pandas.groupedMap.assignColumnsByName legacy.followThreeValuedLogicInArrayExists
    legacy.histogramNumericPropagateInputType legacy.literal.pickMinimumPrecision
    legacy.replaceDatabricksSparkAvro.enabled legacy.setCommandRejectsSparkCoreConfs legacy.sizeOfNull
    legacy.viewSchemaBindingMode legacy.viewSchemaCompensation lightweightPlanChangeValidation
    mapZipWithUsesJavaCollections operatorPipeSyntaxEnabled optimizeNullAwareAntiJoin
    optimizer.avoidCollapseUDFWithExpensiveExpr optimizer.datasourceV2ExprFolding
    optimizer.decorrelateInnerQuery.enabled optimizer.decorrelateJoinPredicate.enabled
    optimizer.decorrelateLimit.enabled optimizer.decorrelateOffset.enabled
    optimizer.decorrelatePredicateSubqueriesInJoinPredicate.enabled optimizer.decorrelateSetOps.enabled
    optimizer.decorrelateSubqueryPreventConstantHoldingForCountBug.enabled
    optimizer.decorrelateUnionOrSetOpUnderLimit.enabled optimizer.enableCsvExpressionOptimization
    optimizer.enableJsonExpressionOptimization optimizer.excludeSubqueryRefsFromRemoveRedundantAliases.enabled
    optimizer.expression.nestedPruning.enabled optimizer.optimizeOneRowRelationSubquery
    optimizer.optimizeOneRowRelationSubquery.alwaysInline
    optimizer.optimizeUncorrelatedInSubqueriesInJoinCondition.enabled optimizer.plannedWrite.enabled
    optimizer.preserveAliasMetadataWhenCollapsingProjects optimizer.propagateDistinctKeys.enabled
    optimizer.pullHintsIntoSubqueries optimizer.pullOutNestedDataOuterRefExpressions.enabled
    optimizer.replaceExceptWithFilter optimizer.scalarSubqueryUseSingleJoin
    optimizer.serializer.nestedSchemaPruning.enabled optimizer.wrapExistsInAggregateFunction orderByOrdinal
    orderingAwareLimitOffset parquet.enableNullTypeVectorizedReader parquet.fieldId.write.enabled
    parquet.inferTimestampNTZ.enabled parquet.int96AsTimestamp parquet.variant.annotateLogicalType.enabled
    parser.eagerEvalOfUnresolvedInlineTable prioritizeOrdinalResolutionInSort.enabled readSideCharPadding
    requireAllClusterKeysForCoPartition retainGroupColumns runCollationTypeCastsBeforeAliasAssignment.enabled
    runSQLOnFiles scripting.enabled selfJoinAutoResolveAmbiguity sources.partitionColumnTypeInference.enabled
    sources.validatePartitionColumns streaming.checkpoint.escapedPathCheck.enabled
    streaming.fileSource.schema.forceNullable streaming.noDataMicroBatches.enabled
    streaming.realTimeMode.allowlistCheck streaming.stateStore.commitValidation.enabled
    streaming.stateStore.formatValidation.enabled streaming.stateStore.stateSchemaCheck
    streaming.statefulOperator.allowMultiple streaming.statefulOperator.checkCorrectness.enabled
    streaming.statefulOperator.useStrictDistribution streaming.unsupportedOperationCheck
    streaming.verifyCheckpointDirectoryEmptyOnStart subexpressionElimination.enabled udt.allowCreatingUDTFromString
    unionOutputPartitioning useCommonExprIdForAlias variable.substitute variant.allowReadingShredded
    variant.inferShreddingSchema variant.pushVariantIntoScan variant.writeShredding.enabled
"""
_FALSE: Final = """
    alwaysInlineCommonExpr analyzer.allowSubqueryExpressionsInLambdasOrHigherOrderFunctions
    analyzer.singlePassResolver.dualRunWithLegacy analyzer.singlePassResolver.enabled
    analyzer.singlePassResolver.enabledTentatively analyzer.singlePassResolver.exposeResolverGuardFailure
    analyzer.singlePassResolver.preventUsingAliasesFromNonDirectChildren
    analyzer.singlePassResolver.returnSinglePassResultInDualRun analyzer.singlePassResolver.throwFromResolverGuard
    ansi.doubleQuotedIdentifiers ansi.enforceReservedKeywords ansi.relationPrecedence caseSensitive charAsVarchar
    datetime.java8API.enabled execution.fastFailOnFileFormatOutput execution.pandas.inferPandasDictAsMap
    execution.pythonUDF.arrow.enabled execution.pythonUDF.arrow.legacy.fallbackOnUDT
    execution.pythonUDF.pandas.intToDecimalCoercionEnabled execution.pythonUDTF.arrow.enabled
    files.ignoreCorruptFiles files.ignoreInvalidPartitionPaths files.ignoreMissingFiles
    function.concatBinaryAsString function.eltOutputAsString geospatial.enabled hive.convertCTAS
    hive.dropPartitionByName.enabled hive.metastorePartitionPruningFallbackOnException
    hive.metastorePartitionPruningFastFallback hive.thriftServer.singleSession json.useUnsafeRow
    legacy.addSingleFileInAddFile legacy.allowAutoGeneratedAliasForView legacy.allowEmptySchemaWrite
    legacy.allowHashOnMapType legacy.allowNegativeScaleOfDecimal legacy.allowNonEmptyLocationInCTAS
    legacy.allowNullComparisonResultInArraySort legacy.allowParameterlessCount
    legacy.allowSessionVariableInPersistedView legacy.allowStarWithSingleTableIdentifierInCount
    legacy.allowTempViewCreationWithMultipleNameparts legacy.allowUntypedScalaUDF
    legacy.allowZeroIndexInFormatString legacy.avro.allowIncompatibleSchema legacy.bangEqualsNot
    legacy.blockCreateTempTableUsingProvider legacy.bucketedTableScan.outputOrdering
    legacy.castComplexTypesToString.enabled legacy.charVarcharAsString legacy.codingErrorAction
    legacy.consecutiveStringLiterals.enabled legacy.createEmptyCollectionUsingStringType
    legacy.createHiveTableByDefault legacy.dataFrameWriterV2IgnorePathOption
    legacy.dataset.nameNonStructGroupingKeyAsValue legacy.db2.booleanMapping.enabled
    legacy.db2.numericMapping.enabled legacy.decimal.retainFractionDigitsOnTruncate
    legacy.disableMapKeyNormalization legacy.doLooseUpcast legacy.duplicateBetweenInput legacy.earlyEvalCurrentTime
    legacy.emptyCurrentDBInCli legacy.execution.pythonUDF.pandas.conversion.enabled
    legacy.execution.pythonUDTF.pandas.conversion.enabled legacy.exponentLiteralAsDecimal.enabled
    legacy.extraOptionsBehavior.enabled legacy.fromDayTimeString.enabled legacy.groupingIdWithAppendedUserGroupBy
    legacy.identifierClause legacy.inSubqueryNullability legacy.inlineCTEInCommands legacy.integerGroupingId
    legacy.interval.enabled legacy.javaCharsets legacy.json.allowEmptyString.enabled legacy.keepCommandOutputSchema
    legacy.keepPartitionSpecAsStringLiteral legacy.lpadRpadAlwaysReturnString
    legacy.mssqlserver.datetimeoffsetMapping.enabled legacy.mssqlserver.numericMapping.enabled
    legacy.mysql.bitArrayMapping.enabled legacy.mysql.timestampNTZMapping.enabled legacy.negativeIndexInArrayInsert
    legacy.noCharPaddingInPredicate legacy.notReserveProperties legacy.nullValueWrittenAsQuotedEmptyStringCsv
    legacy.oracle.timestampMapping.enabled legacy.parameterSubstitution.constantsOnly legacy.parquet.nanosAsLong
    legacy.parquet.returnNullStructIfAllFieldsMissing legacy.parseNullPartitionSpecAsStringLiteral
    legacy.parseQueryWithoutEof legacy.parser.havingWithoutGroupByAsWhere legacy.pathOptionBehavior.enabled
    legacy.percentileDiscCalculation legacy.postgres.datetimeMapping.enabled legacy.raiseErrorWithoutErrorClass
    legacy.readFileSourceTableCacheIgnoreOptions legacy.respectNullabilityInTextDatasetConversion
    legacy.scalarSubqueryAllowGroupByNonEqualityCorrelatedPredicate legacy.scalarSubqueryCountBugBehavior
    legacy.sessionInitWithConfigDefaults legacy.setopsPrecedence.enabled legacy.skipTypeValidationOnAlterPartition
    legacy.statisticalAggregate legacy.storeAnalyzedPlanForView legacy.truncateForEmptyRegexSplit
    legacy.typeCoercion.datetimeToString.enabled legacy.useCurrentConfigsForView legacy.useLegacyXMLParser
    legacy.useV1Command legacy.v1IdentifierNoCatalog mergeNestedTypeCoercion.enabled
    optimizer.canChangeCachedPlanOutputPartitioning optimizer.collapseProjectAlwaysInline
    optimizer.datasourceV2JoinPushdown optimizer.decorrelateExistsSubqueryLegacyIncorrectCountHandling.enabled
    optimizer.decorrelateSubqueryLegacyIncorrectCountHandling.enabled optimizer.disableHints optimizer.metadataOnly
    optimizer.pruneFiltersCanPruneStreamingSubplan orc.aggregatePushdown orc.mergeSchema parquet.aggregatePushdown
    parquet.binaryAsString parquet.fieldId.read.enabled parquet.fieldId.read.ignoreMissing
    parquet.ignoreVariantAnnotation parquet.int96TimestampConversion parquet.mergeSchema
    parquet.reader.respectUnknownTypeAnnotation.enabled parquet.respectSummaryFiles parquet.writeLegacyFormat
    parser.escapedStringLiterals parser.quotedRegexColumnNames preserveCharVarcharTypeInfo
    python.filterPushdown.enabled requireAllClusterKeysForDistribution scripting.continueHandlerEnabled
    stableDerivedColumnAlias.enabled streaming.checkpoint.renamedFileCheck.enabled
    streaming.fileStreamSink.ignoreMetadata streaming.flatMapGroupsWithState.skipEmittingInitialStateKeys
    streaming.forceDeleteTempCheckpointLocation streaming.kafka.useDeprecatedOffsetFetching
    streaming.optimizeOneRowPlan.enabled streaming.schemaInference
    streaming.sessionWindow.merge.sessions.in.local.partition
    streaming.stateStore.skipNullsForStreamStreamJoins.enabled streaming.triggerAvailableNowWrapper.enabled
    subexpressionElimination.skipForShortcutExpr timeType.enabled truncateTable.ignorePermissionAcl.enabled
    tvf.allowMultipleTableArguments.enabled variant.allowDuplicateKeys
"""
_OTHERS: Final = {
    "analyzer.canonicalization.multiCommutativeOpMemoryOptThreshold": "3",
    "analyzer.singlePassResolver.dualRunSampleRate": "0.001",
    "avro.datetimeRebaseModeInRead": "CORRECTED",
    "avro.datetimeRebaseModeInWrite": "CORRECTED",
    "catalog.spark_catalog": "builtin",
    "catalog.spark_catalog.defaultDatabase": "default",
    "catalogImplementation": "in-memory",
    "columnNameOfCorruptRecord": "_corrupt_record",
    "cteRecursionAnchorRowsLimitToConvertToLocalRelation": "100",
    "cteRecursionLevelLimit": "100",
    "cteRecursionRowLimit": "1000000",
    "defaultCatalog": "spark_catalog",
    "defaultColumn.allowedProviders": "csv,json,orc,parquet",
    "execution.pandas.structHandlingMode": "legacy",
    "globalTempDatabase": "global_temp",
    "hive.caseSensitiveInferenceMode": "NEVER_INFER",
    "hive.filesourcePartitionFileCacheSize": "262144000",
    "hive.metastorePartitionPruningInSetThreshold": "1000",
    "legacy.ctePrecedencePolicy": "CORRECTED",
    "legacy.timeParserPolicy": "CORRECTED",
    "mapKeyDedupPolicy": "EXCEPTION",
    "metadataCacheTTLSeconds": "-1000ms",
    "optimizer.nestedPredicatePushdown.supportedFileSources": "parquet,orc",
    "orc.impl": "native",
    "parquet.datetimeRebaseModeInRead": "CORRECTED",
    "parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "parquet.int96RebaseModeInRead": "CORRECTED",
    "parquet.int96RebaseModeInWrite": "CORRECTED",
    "parquet.output.committer.class": "org.apache.parquet.hadoop.ParquetOutputCommitter",
    "parquet.outputTimestampType": "INT96",
    "pivotMaxValues": "10000",
    "session.collation.default": "UTF8_BINARY",
    "sources.binaryFile.maxLength": "2147483647",
    "sources.commitProtocolClass": "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol",
    "sources.default": "parquet",
    "sources.disabledJdbcConnProviderList": "",
    "sources.partitionOverwriteMode": "STATIC",
    "sources.schemaStringLengthThreshold": "4000",
    "sources.useListFilesFileSystemList": "s3a",
    "sources.useV1SourceList": "avro,csv,json,kafka,orc,parquet,text",
    "storeAssignmentPolicy": "ANSI",
    "streaming.aggregation.stateFormatVersion": "2",
    "streaming.commitProtocolClass": "org.apache.spark.sql.execution.streaming.ManifestFileCommitProtocol",
    "streaming.disabledV2MicroBatchReaders": "",
    "streaming.disabledV2Writers": "",
    "streaming.flatMapGroupsWithState.stateFormatVersion": "2",
    "streaming.join.stateFormatVersion": "2",
    "streaming.multipleWatermarkPolicy": "min",
    "streaming.realTimeMode.minBatchDuration": "5000ms",
    "streaming.sessionWindow.stateFormatVersion": "1",
    "streaming.stateStore.checkpointFormatVersion": "1",
    "streaming.stateStore.encodingFormat": "unsaferow",
    "streaming.stateStore.valueStateSchemaEvolutionThreshold": "16",
    "streaming.transformWithState.stateSchemaVersion": "3",
    "timeTravelTimestampKey": "timestampAsOf",
    "timeTravelVersionKey": "versionAsOf",
    "timestampType": "TIMESTAMP_LTZ",
    "transposeMaxValues": "500",
    "udt.allowedDynamicUDTClasses": "",
    "variant.forceShreddingSchemaForTest": "",
    "variant.shredding.maxSchemaDepth": "50",
    "variant.shredding.maxSchemaWidth": "300",
    "view.maxNestedViewDepth": "100",
}
DEFAULTS: Final[Mapping[str, str]] = {
    **{f"spark.sql.{name}": "true" for name in _TRUE.split()},
    **{f"spark.sql.{name}": "false" for name in _FALSE.split()},
    **{f"spark.sql.{name}": text for name, text in _OTHERS.items()},
}

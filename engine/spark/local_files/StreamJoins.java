package headrace;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.StreamingJoinHelper;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BindReferences;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.KnownNotNull;
import org.apache.spark.sql.catalyst.expressions.KnownNullable;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.package$;
import org.apache.spark.sql.catalyst.plans.FullOuter$;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.EventTimeWatermark;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.TimestampType$;
import scala.Option;
import scala.Some;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Makes joins of streams give the rows of SQL: what Spark's join operator misreads is written so that it reads it right.
 *
 * Spark 4.1.4 matches NULL keys with each other. It takes any comparison for a bound on the event time, also one of
 * another column, of a number or of truncated times, and drops rows of state by it, or keeps them for ever. It drops the
 * rows of both sides by a key that is the event time of one. The rule runs behind all others of the optimiser: the
 * conditions are those that the operator gets. Columns of its state stay as they are.
 */
public final class StreamJoins extends Rule<LogicalPlan> {
    /** Watermarks in milliseconds, with each kind of fraction of a second; years apart. */
    private static final long[] WATERMARKS = {1_700_000_000_000L, 1_700_000_000_001L, 1_700_000_000_499L,
        1_700_000_000_500L, 1_700_000_000_999L, 1_500_000_059_999L};

    /** Apply the rule to the queries of a session. */
    public static void install(SparkSession session) {
        List<Rule<LogicalPlan>> rules = new ArrayList<>(
            CollectionConverters.asJava(session.experimental().extraOptimizations()));
        StreamJoins own = new StreamJoins();
        // Not by the class: each load of a jar that is not on the class path makes another.
        if (rules.stream().noneMatch(rule -> rule.ruleName().equals(own.ruleName()))) {
            rules.add(own);
            session.experimental().extraOptimizations_$eq(seq(rules));
        }
    }

    @Override
    public LogicalPlan apply(LogicalPlan plan) {
        if (!plan.isStreaming()) {
            return plan;
        }
        LogicalPlan below = (LogicalPlan) plan.mapChildren(child -> apply((LogicalPlan) child));
        if (below instanceof Join join && join.left().isStreaming() && join.right().isStreaming()
            && join.condition().isDefined()) {
            return new OneJoin(join).exact();
        }
        return below;
    }

    private static <T> Seq<T> seq(List<T> items) {
        return CollectionConverters.asScala(items).toList();
    }

    /** A join, and what becomes of its condition. */
    private static final class OneJoin {
        private final Join join;
        private final Side left;
        private final Side right;
        private final List<Expression> conditions = new ArrayList<>();
        private final List<Expression> keys = new ArrayList<>();
        private boolean changed;

        OneJoin(Join join) {
            this.join = join;
            left = new Side(join.left());
            right = new Side(join.right());
        }

        Join exact() {
            boolean timed = false;
            List<Expression> others = new ArrayList<>();
            for (Expression condition : parts(join.condition().get())) {
                EqualTo pair = pair(condition);
                if (pair == null) {
                    others.add(condition);
                    continue;
                }
                boolean both = marked(pair.left()) && marked(pair.right());
                timed |= both;
                Expression one = both ? pair.left() : unmarked(pair.left());
                Expression other = both ? pair.right() : unmarked(pair.right());
                Collections.addAll(keys, one, other);
                conditions.add(one == pair.left() && other == pair.right() ? pair : new EqualTo(one, other));
            }
            if (keys.isEmpty()) {
                // Spark rejects it.
                return join;
            }
            for (Expression condition : others) {
                conditions.add(timed ? condition : bound(condition));
            }
            for (Expression key : keys) {
                require(key);
            }
            for (Side side : preserved()) {
                release(side, timed);
            }
            return changed ? new Join(join.left(), join.right(), join.joinType(), Some.apply(all()), join.hint()) : join;
        }

        /** An equality whose sides are keys of the join; null: it is another condition. */
        private EqualTo pair(Expression condition) {
            if (!(condition instanceof EqualTo equal) || !equal.deterministic()) {
                return null;
            }
            boolean straight = left.has(equal.left()) && right.has(equal.right());
            return straight || left.has(equal.right()) && right.has(equal.left()) ? equal : null;
        }

        /** The key without the mark of its watermark: rows of the other side are not late by it. */
        private Expression unmarked(Expression key) {
            if (!marked(key)) {
                return key;
            }
            changed = true;
            return key.nullable() ? new KnownNullable(key) : new KnownNotNull(key);
        }

        /** The condition, hidden from Spark where it would drop rows by it that can still match. */
        private Expression bound(Expression condition) {
            boolean harmful = left.misread(condition, right) || right.misread(condition, left);
            changed |= harmful;
            return harmful ? new KnownNullable(condition) : condition;
        }

        /** A row whose value is NULL matches none, and never waits. */
        private void require(Expression value) {
            IsNotNull there = new IsNotNull(value);
            if (value.nullable() && conditions.stream().noneMatch(there::semanticEquals)) {
                conditions.add(there);
                changed = true;
            }
        }

        private List<Side> preserved() {
            if (join.joinType() == LeftOuter$.MODULE$) {
                return List.of(left);
            }
            if (join.joinType() == RightOuter$.MODULE$) {
                return List.of(right);
            }
            return join.joinType() == FullOuter$.MODULE$ ? List.of(left, right) : List.of();
        }

        /** Rows of a side that is preserved are written at some time; those without an event time at once. */
        private void release(Side side, boolean timed) {
            if (timed) {
                return;
            }
            Side other = side == left ? right : left;
            if (conditions.stream().noneMatch(condition -> side.threshold(condition, other, WATERMARKS[0]) != null)) {
                throw new IllegalStateException("an outer join of streams has no bound on the event time of its "
                    + (side == left ? "left" : "right") + " side: its unmatched rows would never be written");
            }
            require(side.time);
        }

        private Expression all() {
            return conditions.stream().reduce(And::new).orElseThrow();
        }
    }

    /** One side of a join. */
    private static final class Side {
        private final LogicalPlan plan;
        /** The column with the watermark; null: there is none. */
        private final Attribute time;

        Side(LogicalPlan plan) {
            this.plan = plan;
            time = CollectionConverters.asJava(plan.output()).stream().filter(StreamJoins::marked).findFirst().orElse(null);
        }

        boolean has(Expression value) {
            return !value.references().isEmpty() && value.references().subsetOf(plan.outputSet());
        }

        /** Whether Spark would drop rows of this side by a condition although it does not say that they cannot match. */
        boolean misread(Expression condition, Side other) {
            Long first = threshold(condition, other, WATERMARKS[0]);
            if (first == null) {
                return false;
            }
            for (long watermark : WATERMARKS) {
                // Less than this one moves, it would keep rows for ever: Spark takes the least of all.
                long threshold = first + watermark - WATERMARKS[0];
                if (!Long.valueOf(threshold).equals(threshold(condition, other, watermark))
                    || !excludes(condition, other, watermark, threshold)) {
                    return true;
                }
            }
            return false;
        }

        /** The time up to which Spark drops the rows of this side by a condition, in milliseconds; null: it does not. */
        Long threshold(Expression condition, Side other, long watermark) {
            if (time == null || other.time == null) {
                return null;
            }
            Option<Object> found = StreamingJoinHelper.getStateValueWatermark(
                plan.outputSet(), other.plan.outputSet(), Some.apply(condition), Some.apply((Object) watermark));
            return found.isDefined() ? (Long) found.get() : null;
        }

        /** Whether the condition is false for the last row that is dropped and the first of the other side that is not late. */
        private boolean excludes(Expression condition, Side other, long watermark, long threshold) {
            List<Attribute> times = List.of(time, other.time);
            boolean onTimes = condition.references().size() == times.size()
                && times.stream().allMatch(condition.references()::contains);
            if (!onTimes || !times.stream().allMatch(column -> column.dataType() == TimestampType$.MODULE$)) {
                return false;
            }
            try {
                InternalRow row = new GenericInternalRow(new Object[] {threshold * 1000, watermark * 1000 + 1});
                Expression bound = BindReferences.bindReference(condition, package$.MODULE$.AttributeSeq(seq(times)), false);
                return !Boolean.TRUE.equals(bound.eval(row));
            } catch (RuntimeException unknown) {
                return false;
            }
        }
    }

    private static boolean marked(Expression value) {
        return value instanceof NamedExpression named && named.metadata().contains(EventTimeWatermark.delayKey());
    }

    private static List<Expression> parts(Expression condition) {
        if (!(condition instanceof And both)) {
            return List.of(condition);
        }
        List<Expression> result = new ArrayList<>(parts(both.left()));
        result.addAll(parts(both.right()));
        return result;
    }
}

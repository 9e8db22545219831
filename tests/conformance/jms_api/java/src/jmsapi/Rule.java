package jmsapi;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * The rule that a test judges. The test is a method <code>void name(Probe probe)</code>. ../../../catalogue.py reads
 * this annotation from the source: its parts come in this order, each on a line of its own.
 */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
@interface Rule {
    /** The clause of the JMS 2.0 specification; Jakarta Messaging 3.x has the same numbers. */
    String clause();

    /** The rule in one sentence. */
    String says();

    /** Why Qpid JMS itself breaks the rule, whatever the broker does; empty if it keeps it. */
    String clientBreaksIt() default "";
}

package com.acme;

import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.MonthDay;
import java.time.OffsetDateTime;
import java.time.OffsetTime;
import java.time.Period;
import java.time.Year;
import java.time.YearMonth;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/** Times, which each object mapper writes in its own way. */
public class Clock {
    public LocalDateTime local;
    public LocalDate day;
    public LocalTime time;
    public Instant instant;
    public Duration gap;
    public Date date;
    public Object open;
    public List<LocalDateTime> list;
    public Map<String, Instant> map;
    public LocalDate[] array;
    public List<Long> longs;
    public Long[] boxes;
    public UUID uuid;
    public OffsetDateTime offset;
    public ZonedDateTime zoned;
    public OffsetTime offsetTime;
    public Year year;
    public YearMonth yearMonth;
    public MonthDay monthDay;
    public Period period;
    public ZoneId zone;
    public ZoneOffset zoneOffset;
}
